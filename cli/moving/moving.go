// Package moving reports what behaves differently in a cluster when OpenKruise's programs are replaced by Refit's, or the
// other way round, before anything is changed. It only reads; the differences are decided by package openkruise.
package moving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/cli/openkruise"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/wording"
)

// ErrDiffers is wrapped by the error of a run that has found differences.
var ErrDiffers = errors.New("not everything behaves as before")

// Config is the configuration of a run.
type Config struct {
	API client.Client
	// System is the namespace of refit-manager and refit-daemon, also if they are not installed yet.
	System string
	// Directions to report: openkruise.ToRefit, openkruise.FromRefit.
	Directions []openkruise.Direction
	// Format is json, yaml or empty for text.
	Format string
	// Now is the time for decisions about updates in progress.
	Now time.Time
}

// Report is the result of a run.
type Report struct {
	Differences []openkruise.Entry `json:"differences"`
	// Unread lists what could not be read, and why. The report is incomplete then.
	Unread []Unread `json:"unread,omitempty"`
	// Omitted is the number of further distinct differences that are not in the report.
	Omitted int `json:"omitted,omitempty"`
}

// Unread is a kind of object that could not be read.
type Unread struct {
	What    string `json:"what"`
	Message string `json:"message"`
	// err is nil if the user may not read it.
	err error
}

// AddToScheme adds the kinds that are read with their types.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme),
		networkingv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
}

// Run reads the cluster and writes the differences. The error wraps ErrDiffers if there are any. A missing permission is
// reported and is no error. Other failures to read are returned after everything else has been reported.
func Run(ctx context.Context, config Config, out io.Writer) error {
	report := Examine(ctx, config)
	if err := write(out, config, &report); err != nil {
		return err
	}
	var errs []error
	for _, unread := range report.Unread {
		if unread.err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", unread.What, unread.err))
		}
	}
	if n := len(report.Differences) + report.Omitted; n > 0 {
		errs = append(errs, fmt.Errorf("%w: %s", ErrDiffers, wording.Count(n, "difference", "differences")))
	}
	return errors.Join(errs...)
}

// Examine reads the cluster and returns the report.
func Examine(ctx context.Context, config Config) Report {
	e := &examiner{Config: config, cluster: &openkruise.Cluster{}, served: map[string]schema.GroupVersionKind{}, used: map[string]openkruise.Objects{}}
	for _, read := range []struct {
		what string
		from func(context.Context) error
	}{
		{"Deployments and DaemonSets", e.programs},
		{"webhook configurations", e.webhooks},
		{"CustomResourceDefinitions and objects of their kinds", e.kinds},
		{"Namespaces", e.namespaces},
		{"Nodes", e.nodes},
		{"ConfigMap kruise-configuration", e.allowlist},
		{"ControllerRevisions", e.revisions},
		{"SidecarSets", e.sidecarSets},
		{"ContainerRecreateRequests", e.requests},
		{"ImagePullJobs and ImageListPullJobs", e.jobs},
		{"PodProbeMarkers", e.markers},
		{"PodDisruptionBudgets", e.budgets},
		{"Secrets", e.secrets},
		{"workloads", e.workloads},
		{"pods", e.pods},
	} {
		e.note(read.what, read.from(ctx))
	}
	report := Report{Differences: []openkruise.Entry{}, Unread: e.unread, Omitted: e.found.Omitted()}
	for _, direction := range config.Directions {
		report.Differences = append(report.Differences, e.found.Entries(direction)...)
	}
	return report
}

// titles are the titles of the directions in the text.
var titles = map[openkruise.Direction]string{
	openkruise.ToRefit: "from OpenKruise to Refit:", openkruise.FromRefit: "from Refit to OpenKruise:",
}

func write(out io.Writer, config Config, report *Report) error {
	switch config.Format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	case "yaml":
		text, err := yaml.Marshal(report)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return writeText(out, config.Directions, report)
}

func writeText(out io.Writer, directions []openkruise.Direction, report *Report) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprint(out, foreign.PrintableLines(fmt.Sprintf(format, args...))) // objects and errors have text of others
		errs = append(errs, err)
	}
	for _, direction := range directions {
		line("%s\n", titles[direction])
		same := true
		for _, entry := range report.Differences {
			if entry.Direction == direction {
				line("differs  %s: %s. %s.\n", entry.Object, entry.Differs, capital(entry.Do))
				same = false
			}
		}
		if same {
			line("ok       nothing differs in what was read\n")
		}
	}
	if report.Omitted > 0 {
		line("omitted  %d more differences\n", report.Omitted)
	}
	for _, unread := range report.Unread {
		result := "skipped"
		if unread.err != nil {
			result = "failed"
		}
		line("%-8s %s: %s\n", result, unread.What, unread.Message)
	}
	return errors.Join(errs...)
}

// capital makes the first letter upper case. It is a letter of ASCII, because the text begins with a verb.
func capital(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}
