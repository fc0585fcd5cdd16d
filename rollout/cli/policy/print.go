package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/workload"
)

func lower(kind string) string { return strings.ToLower(kind) }

// replaces reports whether the controller of the workload would replace the pods that cannot be updated in place. It does so for a
// template that is not possible in place, and not for single pods.
func replaces(shown *workload.Preview) bool { return shown.Refused != nil || shown.Replacing != "" }

// effect says in one word what an update does to a pod, and adds details. replaced says that a pod that cannot be updated in place is
// replaced.
func effect(p *workload.PodPreview, replaced bool) (what, detail string) {
	switch {
	case p.Excluded:
		return "none", "the partition of the StatefulSet excludes it"
	case p.Refused != nil && replaced:
		return "replaced", strings.Join(reasons(p.Refused), "; ")
	case p.Refused != nil:
		return "fails", strings.Join(reasons(p.Refused), "; ") + "; delete the pod: its workload creates another one"
	case p.Update == nil:
		return "none", "it has the template"
	}
	stops := p.Update.Stops(&p.Spec)
	what = "metadata"
	if slices.ContainsFunc(p.Update.Changes.Containers, func(c plan.Change) bool { return c.Resources != nil }) {
		what = "resize"
	}
	if len(stops) > 0 {
		what = "restart " + strings.Join(stops, ",")
	}
	return what, strings.Join(details(p.Pod, p.Update), "; ")
}

// reasons returns why a pod cannot be updated in place.
func reasons(err error) []string {
	var refused *plan.RefusedError
	if !errors.As(err, &refused) {
		return []string{err.Error()}
	}
	var texts []string
	for _, refusal := range refused.Refusals {
		texts = append(texts, refusal.String())
	}
	return texts
}

// details describes the changes of an update.
func details(pod *corev1.Pod, update *plan.Update) []string {
	var texts []string
	for _, c := range update.Changes.Containers {
		was := plan.Find(&pod.Spec, c.Container)
		if was == nil {
			continue
		}
		if c.Image != "" {
			texts = append(texts, fmt.Sprintf("%s: image %s -> %s", c.Container, was.Image, c.Image))
		}
		if c.Resources != nil {
			texts = append(texts, quantities(c.Container+": requests", was.Resources.Requests, c.Resources.Requests)...)
			texts = append(texts, quantities(c.Container+": limits", was.Resources.Limits, c.Resources.Limits)...)
		}
		texts = append(texts, values(c.Metadata.Labels)...)
		texts = append(texts, values(c.Metadata.Annotations)...)
	}
	for _, changed := range []map[string]*string{update.Changes.Labels, update.Changes.Annotations} {
		texts = append(texts, pointed(changed)...)
	}
	return texts
}

func quantities(of string, was, is corev1.ResourceList) []string {
	var texts []string
	for name, quantity := range is {
		before, had := was[name]
		if had && before.Cmp(quantity) == 0 {
			continue
		}
		from := "none"
		if had {
			from = before.String()
		}
		texts = append(texts, fmt.Sprintf("%s.%s %s -> %s", of, name, from, quantity.String()))
	}
	slices.Sort(texts)
	return texts
}

func values(of map[string]string) []string {
	var texts []string
	for key, value := range of {
		texts = append(texts, key+"="+value)
	}
	slices.Sort(texts)
	return texts
}

func pointed(of map[string]*string) []string {
	var texts []string
	for key, value := range of {
		if value == nil {
			texts = append(texts, key+" removed")
		} else {
			texts = append(texts, key+"="+*value)
		}
	}
	slices.Sort(texts)
	return texts
}

// printPods prints what would happen to each pod, in the order of the updates.
func (s *setter) printPods(shown *workload.Preview) error {
	if len(shown.Pods) == 0 {
		s.Output.Print("  it has no pods\n")
		return nil
	}
	s.Output.Print("  %s\n\n", s.summary(shown))
	all := table.Table{Columns: []table.Column{{Name: "POD"}, {Name: "NODE"}, {Name: "EFFECT"}, {Name: "DETAIL"}}}
	for i := range shown.Pods {
		p := &shown.Pods[i]
		what, detail := effect(p, replaces(shown))
		all.Rows = append(all.Rows, table.Row{Object: p.Pod, Cells: []any{p.Name, p.Spec.NodeName, what, detail}})
	}
	var text strings.Builder
	if err := table.Print(&text, table.Options{}, s.API.Scheme(), all); err != nil {
		return fmt.Errorf("print pods: %w", err)
	}
	s.Output.Print("%s", text.String())
	return nil
}

// maxEffects is how many different effects are printed.
const maxEffects = 8

// printEffects prints what happens to the pods, each different effect once.
func (s *setter) printEffects(shown *workload.Preview) {
	s.Output.Print("%s: %s\n", s.target, s.summary(shown))
	var said []string
	for i := range shown.Pods {
		what, detail := effect(&shown.Pods[i], replaces(shown))
		line := what + ": " + detail
		if what == "none" || slices.Contains(said, line) {
			continue
		}
		if said = append(said, line); len(said) <= maxEffects {
			s.Output.Print("  %s\n", line)
		}
	}
	if more := len(said) - maxEffects; more > 0 {
		s.Output.Print("  and %d more; --dry-run prints all\n", more)
	}
}

// summary says how many pods are updated, and at which pace.
func (s *setter) summary(shown *workload.Preview) string {
	after := s.governs.DeepCopy().Spec
	s.how.Options.apply(&after)
	changed, refused := 0, 0
	for i := range shown.Pods {
		switch p := &shown.Pods[i]; {
		case p.Refused != nil:
			refused++
		case p.Update != nil:
			changed++
		}
	}
	fail, when := "", ""
	switch {
	case refused > 0 && replaces(shown):
		return fmt.Sprintf("%s replaced by the controller of the %s", wording.Count(refused, "pod would be", "pods would be"), s.target.Kind)
	case refused > 0:
		fail = wording.Count(refused, "pod would fail; ", "pods would fail; ")
		if after.FailurePolicy != v1alpha1.UpdateFailureContinue {
			when = " when no such pod is left"
		}
	}
	most := max(1, budget.Scaled(after.MaxUnavailable, len(shown.Pods), false, 1))
	text := fmt.Sprintf("%s%s updated in place%s, at most %d unavailable at a time", fail, wording.Count(changed, "pod is", "pods are"), when, most)
	if shown.WithoutSteps {
		after.Steps = nil
	}
	for i, step := range after.Steps {
		first := "first"
		if i > 0 {
			first = "then"
		}
		text += fmt.Sprintf("; %s %s", first, step.Pods.String())
		switch {
		case step.Pause != nil && step.Pause.Seconds == nil:
			text += ", until that is promoted"
		case step.Pause != nil:
			text += fmt.Sprintf(", for %d s", *step.Pause.Seconds)
		}
	}
	if after.Paused {
		text += "; the policy is paused"
	}
	return text
}
