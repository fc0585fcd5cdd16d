package timeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/cli/timeline/svg"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/foreign"
)

// Formats are the values of --output; empty is text.
var Formats = []string{"", "svg", "json", "yaml"}

// Config is the configuration of the command.
type Config struct {
	API       client.Reader
	Namespace string
	// Format is one of Formats.
	Format string
}

// Target is a request, the requests of a rollout, or the last update by an InPlaceUpdatePolicy.
type Target struct{ Request, Rollout, Policy string }

// ParseTarget reads crr/NAME, restartrollout/NAME or inplaceupdatepolicy/NAME, with the names of the kinds that kubectl accepts.
func ParseTarget(text string) (Target, error) {
	if kind, name, ok := console.KindName(text); ok {
		switch {
		case console.IsRequest(kind):
			return Target{Request: name}, nil
		case console.IsRestartRollout(kind):
			return Target{Rollout: name}, nil
		case console.IsPolicy(kind):
			return Target{Policy: name}, nil
		}
	}
	return Target{}, fmt.Errorf("%w: %q: want crr/NAME, restartrollout/NAME or inplaceupdatepolicy/NAME", console.ErrUsage, text)
}

// report is what is shown.
type report struct {
	line     status.Line
	restarts []restart
	moments  []Moment
	notes    []string
}

// Run writes the timeline of the target.
func Run(ctx context.Context, config Config, out io.Writer, target Target) error {
	r, err := config.read(ctx, target)
	if err != nil {
		return err
	}
	switch config.Format {
	case "":
		return r.text(out)
	case "svg":
		return svg.Draw(out, r.picture())
	}
	text, err := json.MarshalIndent(r.moments, "", "  ")
	if err == nil && config.Format == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSpace(string(text)))
	return err
}

func (c Config) read(ctx context.Context, target Target) (*report, error) {
	if target.Policy != "" {
		if c.Format == "svg" {
			return nil, fmt.Errorf("%w: --output=svg is for restarts; want json or yaml", console.ErrUsage)
		}
		return c.update(ctx, target.Policy)
	}
	r := &report{}
	var requests v1beta1.ContainerRecreateRequestList
	if target.Rollout == "" {
		requests.Items = make([]v1beta1.ContainerRecreateRequest, 1)
		if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: target.Request}, &requests.Items[0]); err != nil {
			return nil, err
		}
		r.line = status.Describe(&requests.Items[0])
	} else {
		var rollout v1alpha1.RestartRollout
		if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: target.Rollout}, &rollout); err != nil {
			return nil, err
		}
		r.line = status.Describe(&rollout)
		if err := c.API.List(ctx, &requests, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelRestartRollout: string(rollout.UID)}); err != nil {
			return nil, fmt.Errorf("list the ContainerRecreateRequests of the rollout: %w", err)
		}
		if gone := int(rollout.Status.RestartedPods+rollout.Status.FailedPods+rollout.Status.RestartingPods) - len(requests.Items); gone > 0 {
			r.notes = append(r.notes, fmt.Sprintf("%d of the rollout's requests have been deleted.", gone))
		}
	}
	for i := range requests.Items {
		one, err := c.about(ctx, &requests.Items[i], r)
		if err != nil {
			return nil, err
		}
		r.restarts = append(r.restarts, one)
		r.moments = append(r.moments, one.moments()...)
	}
	slices.SortStableFunc(r.moments, func(a, b Moment) int { return a.at.Compare(b.at) })
	slices.SortStableFunc(r.restarts, func(a, b restart) int { return cmp.Compare(a.request.Spec.PodName, b.request.Spec.PodName) })
	return r, nil
}

// about reads the other objects that record something about a request. The user may have no permission to read Events.
func (c Config) about(ctx context.Context, request *v1beta1.ContainerRecreateRequest, r *report) (restart, error) {
	of := restart{request: request}
	var pod corev1.Pod
	err := c.API.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, &pod)
	if err == nil && samePod(request, &pod) {
		of.pod = &pod
	} else if client.IgnoreNotFound(err) != nil {
		return of, err
	}
	for _, uid := range []types.UID{request.UID, types.UID(request.Labels[v1beta1.LabelPodUID])} {
		var events corev1.EventList
		err := c.API.List(ctx, &events, client.InNamespace(request.Namespace), client.MatchingFields{"involvedObject.uid": string(uid)})
		if apierrors.IsForbidden(err) {
			if note := "You may not list Events, which have the most precise times."; !slices.Contains(r.notes, note) {
				r.notes = append(r.notes, note)
			}
			return of, nil
		}
		if err != nil {
			return of, fmt.Errorf("list Events: %w", err)
		}
		of.events = append(of.events, events.Items...)
	}
	return of, nil
}

// text writes a table.
func (r *report) text(out io.Writer) error {
	fmt.Fprintln(out, foreign.Printable(r.line.Name+": "+r.summary()))
	for _, note := range r.notes {
		fmt.Fprintln(out, note)
	}
	if len(r.moments) == 0 {
		return nil
	}
	begin := r.begin()
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "TIME (UTC)\tAFTER\tPOD\tCONTAINER\tWHAT\tRECORDED BY")
	for _, m := range r.moments {
		at, after, source := "-", "-", m.Source
		switch {
		case m.NotYet:
			source = "not yet: " + source
		case m.Time == nil:
			source = "not known: " + source
		case m.WholeSeconds:
			at, after = m.Time.UTC().Format("15:04:05"), fmt.Sprintf("~%.0fs", max(m.at.Sub(begin), 0).Seconds())
		default:
			at, after = m.Time.UTC().Format("15:04:05.000"), fmt.Sprintf("%.3fs", m.at.Sub(begin).Seconds())
		}
		cells := []string{at, after, m.Pod, cmp.Or(m.Container, "-"), m.What, source}
		for i, cell := range cells {
			cells[i] = foreign.Printable(cell) // components of Events and messages are text of others
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nTimes without decimals were recorded as whole seconds. The clocks of the API server, of refit-manager and of the nodes may differ.")
	return err
}

func (r *report) summary() string {
	text := r.line.Target + ", " + r.line.State
	if r.line.By != "" {
		text += ", requested by " + r.line.By
	}
	return text
}
