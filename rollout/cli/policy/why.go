package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/rollout/workload"
)

// Why prints what the update of a workload waits for: its policy with the conditions, and of each pod how far it is, in the order of the
// updates, and why it is not updated yet.
func Why(ctx context.Context, config Config, target Target) error {
	c, policy, s, err := governed(ctx, config, target)
	if errors.Is(err, errNoPolicy) {
		c.Output.Print("%s has no InPlaceUpdatePolicy: its own controller replaces the pods when the template is changed\n  follow it: kubectl rollout status %s --namespace=%s\n"+
			"  update its pods in place: kubectl refit set\n", c.target, c.target, c.Namespace)
		return nil
	}
	if err != nil {
		return err
	}
	generation := s.object.GetGeneration()
	_, why := judge(policy, generation)
	if seen(policy, generation) { // otherwise its counts are of an earlier template
		why = bar(policy, why)
	}
	c.Output.Print("%s, InPlaceUpdatePolicy %s: %s\n", c.target, policy.Name, why)
	if hint := advice(policy, c.target); hint != "" {
		c.Output.Print("  %s\n", hint)
	}
	for i := range policy.Status.Conditions {
		one := &policy.Status.Conditions[i]
		c.Output.Print("  %s=%s  %s\n", one.Type, one.Status, text(one))
	}
	w, err := s.workload()
	if err != nil {
		return fmt.Errorf("read %s: %w", c.target, err)
	}
	pods, err := c.pods(ctx, s)
	if err != nil {
		return err
	}
	now := time.Now()
	preview := workload.NewPreview(policy, w, pods, now)
	return c.printStates(policy, &preview, now)
}

// printStates prints a line for each pod.
func (c *command) printStates(policy *v1alpha1.InPlaceUpdatePolicy, preview *workload.Preview, now time.Time) error {
	shown := table.Table{Columns: []table.Column{{Name: "POD"}, {Name: "NODE"}, {Name: "STATE"}, {Name: "WHY"}}, Nothing: "it has no pods"}
	for _, one := range states(policy, preview, now) {
		shown.Rows = append(shown.Rows, table.Row{Object: one.Pod, Cells: []any{one.Pod.Name, one.Pod.Spec.NodeName, one.State, one.Why}})
	}
	var text strings.Builder
	if err := table.Print(&text, table.Options{}, c.API.Scheme(), shown); err != nil {
		return fmt.Errorf("print pods: %w", err)
	}
	c.Output.Print("\n%s", text.String())
	return nil
}

const stateWaiting = "waiting"

// stateOf returns how far the update of a pod is, and what it waits for.
func stateOf(p *workload.PodPreview, policy *v1alpha1.InPlaceUpdatePolicy, now time.Time) (state, why string) {
	update := v1alpha1.TemplateUpdate{}
	if policy.Status.Update != nil {
		update = *policy.Status.Update
	}
	for _, failure := range policy.Status.Failures {
		if failure.Pod == p.Name {
			return "failed", failure.Reason + ": " + failure.Message
		}
	}
	if progress, begun := progressOf(p.Pod, policy, &update, now); begun && !progress.Ended {
		return progress.State, ""
	}
	what, detail := effect(p, true)
	switch {
	case p.Refused != nil:
		return "not in place", detail
	case p.Excluded:
		return "left as it is", detail
	case what == "none" && kubelet.Ready(p.Pod):
		return "updated", ""
	case what == "none":
		return "updated", "it is not ready"
	}
	if progressing := condition(policy, v1alpha1.ConditionProgressing); progressing != nil {
		why = text(progressing)
	}
	return stateWaiting, why
}
