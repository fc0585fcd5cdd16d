package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// Result is the result of a check.
type Result string

// Results of checks. Only Failed makes the installation unhealthy.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Failed  Result = "failed"
	// Skipped means that the user lacks a permission for the check, or that there is nothing to check.
	Skipped Result = "skipped"
)

// Finding is the outcome of one check.
type Finding struct {
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Message string `json:"message"`
}

// ErrUnhealthy is wrapped by the error of a run with a failed check.
var ErrUnhealthy = errors.New("the installation is not healthy")

// Config is what the checks need.
type Config struct {
	API client.Client
	// System is the namespace of refit-manager and refit-daemon.
	System string
	// Namespace in which a request is created with dryRun: nothing is stored.
	Namespace string
	// Version of the program that checks; empty if it is not to be compared with the others.
	Version string
	// Format is json, yaml or empty for text.
	Format string
	// Now is the time that certificates and the Lease of refit-manager are compared with.
	Now time.Time
}

// AddToScheme adds the kinds that are read.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// Run makes all checks and writes their findings. The error wraps ErrUnhealthy if one of them failed.
func Run(ctx context.Context, config Config, out io.Writer) error {
	findings := Examine(ctx, config)
	if err := write(out, config.Format, findings); err != nil {
		return err
	}
	var failed []string
	for _, finding := range findings {
		if finding.Result == Failed {
			failed = append(failed, finding.Check)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %s", ErrUnhealthy, strings.Join(failed, ", "))
	}
	return nil
}

// Examine makes all checks in sequence.
func Examine(ctx context.Context, config Config) []Finding {
	e := examiner{Config: config}
	if err := e.look(ctx); err != nil {
		return []Finding{{Check: "API server", Result: Failed, Message: fmt.Sprintf("it does not answer, so that nothing else was checked: %v", err)}}
	}
	var findings []Finding
	for _, check := range []struct {
		name string
		make func(context.Context) []Finding
	}{
		{"CRDs", e.crds}, {"manager", e.manager}, {"leader", e.leader}, {"daemons", e.daemons}, {"versions", e.versions}, {"webhook", e.webhook}, {"features", e.features},
		{"certificates", e.certificates}, {"policies", e.policies}, {"hold", e.holds}, {"held", e.held}, {"OpenKruise", e.openKruise},
	} {
		for _, finding := range check.make(ctx) {
			finding.Check = check.name
			findings = append(findings, finding)
		}
	}
	return findings
}

func write(out io.Writer, format string, findings []Finding) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(findings)
	case "yaml":
		text, err := yaml.Marshal(findings)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	for _, finding := range findings {
		// Messages have names and errors of others.
		line := foreign.PrintableLines(fmt.Sprintf("%-8s %-13s %s\n", finding.Result, finding.Check, finding.Message))
		if _, err := fmt.Fprint(out, line); err != nil {
			return err
		}
	}
	return nil
}

func one(result Result, format string, args ...any) []Finding {
	return []Finding{{Result: result, Message: fmt.Sprintf(format, args...)}}
}

// unread returns the finding about an object that could not be read. A missing permission of the user is no fault of the
// installation.
func unread(what string, err error) []Finding {
	if apierrors.IsForbidden(err) {
		return one(Skipped, "%s: you may not read them; a role with the verbs get and list for them allows it", what)
	}
	return one(Failed, "read %s: %v", what, err)
}

// examiner makes the checks. Objects that several checks need are read once.
type examiner struct {
	Config
	deployment *appsv1.Deployment // refit-manager; nil if there is none
	daemonSet  *appsv1.DaemonSet  // refit-daemon; nil if there is none
	lookErr    error
}

// look reads the objects that several checks need. It returns an error if every check would return the same one.
func (e *examiner) look(ctx context.Context) error {
	deployment, daemonSet := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	managerErr := e.API.Get(ctx, client.ObjectKey{Namespace: e.System, Name: "refit-manager"}, deployment)
	if noAnswer(managerErr) {
		return managerErr
	}
	if managerErr == nil {
		e.deployment = deployment
	}
	daemonErr := e.API.Get(ctx, client.ObjectKey{Namespace: e.System, Name: "refit-daemon"}, daemonSet)
	if daemonErr == nil {
		e.daemonSet = daemonSet
	}
	e.lookErr = errors.Join(client.IgnoreNotFound(managerErr), client.IgnoreNotFound(daemonErr))
	return nil
}

// noAnswer reports whether the API server cannot be reached, or does not know the user.
func noAnswer(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnauthorized(err)
}
