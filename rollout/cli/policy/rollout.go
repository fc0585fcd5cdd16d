package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
)

// Status prints how the update of a workload stands, and with watch follows it to the end.
func Status(ctx context.Context, config Config, target Target, watch bool) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	c, policy, s, err := governed(ctx, config, target)
	if err != nil {
		return console.Ended(ctx, err)
	}
	if watch {
		return console.Ended(ctx, c.follow(ctx, policy, s, false))
	}
	_, why := judge(policy, s.object.GetGeneration())
	if !seen(policy, s.object.GetGeneration()) { // its counts are of an earlier template
		c.Output.Print("%s: %s\n", c.target, why)
		return nil
	}
	c.Output.Print("%s: %s\n", c.target, bar(policy, why))
	for _, failure := range policy.Status.Failures {
		c.Output.Print("  pod %s: %s: %s\n", failure.Pod, failure.Reason, failure.Message)
	}
	if hint := advice(policy, c.target); hint != "" {
		c.Output.Print("  %s\n", hint)
	}
	return nil
}

// governed reads a workload and its policy.
func governed(ctx context.Context, config Config, target Target) (*command, *v1alpha1.InPlaceUpdatePolicy, *stored, error) {
	c, err := begin(ctx, config, target)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := c.read(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	policy, err := c.policy(ctx)
	if errors.Is(err, errNoPolicy) && s.object.GetLabels()[v1alpha1.LabelHeld] != "" {
		err = fmt.Errorf("%w: %s is held, and has no InPlaceUpdatePolicy that has its pods updated: create one again (kubectl refit set), or release it (docs/workloads.md)", console.ErrFailed, c.target)
	}
	return c, policy, s, err
}

// Pause pauses the updates of a workload, or continues them. Updates of pods that have begun are completed.
func Pause(ctx context.Context, config Config, target Target, paused bool) error {
	c, policy, s, err := governed(ctx, config, target)
	if err != nil {
		return err
	}
	done, already := "resumed", "is not paused"
	if paused {
		done, already = "paused: pods whose update has begun are completed", "is paused already"
	}
	if policy.Spec.Paused == paused {
		done = already
	} else if err := c.edit(ctx, policy, func(spec *v1alpha1.InPlaceUpdatePolicySpec) { spec.Paused = paused }); err != nil {
		return err
	}
	c.Output.Print("inplaceupdatepolicy/%s %s\n", policy.Name, done)
	w, err := s.workload()
	if err != nil {
		return fmt.Errorf("read %s: %w", c.target, err)
	}
	if !paused && w.OwnerHolds && policy.Spec.HoldPolicy != v1alpha1.HoldByOwner {
		c.Output.Print("  %s is paused by its owner as well, and is not updated until that ends\n", c.target)
	}
	return nil
}

// Promote ends the pause of the present step, or with full of all steps of the present template.
func Promote(ctx context.Context, config Config, target Target, full bool) error {
	c, policy, s, err := governed(ctx, config, target)
	if err != nil {
		return err
	}
	status, steps := &policy.Status, len(policy.Spec.Steps)
	switch {
	case steps == 0:
		return fmt.Errorf("%w: InPlaceUpdatePolicy %s has no steps; spec.paused is ended by kubectl refit rollout resume", console.ErrRefused, policy.Name)
	case status.ObservedTargetGeneration < s.object.GetGeneration():
		return fmt.Errorf("%w: refit-manager has not seen the present template of %s yet; try again", console.ErrFailed, c.target)
	case status.Step == nil || int(*status.Step) >= steps:
		return fmt.Errorf("%w: no step of %s is in progress", console.ErrRefused, c.target)
	}
	step := *status.Step
	if full {
		step = int32(steps - 1) //nolint:gosec // the CRD allows 16
	}
	promoted := &v1alpha1.StepReference{Revision: status.UpdateRevision, Step: step}
	if err := c.edit(ctx, policy, func(spec *v1alpha1.InPlaceUpdatePolicySpec) { spec.Promoted = promoted }); err != nil {
		return err
	}
	what := fmt.Sprintf("step %d of %d", step+1, steps)
	if full {
		what = "all steps"
	}
	c.Output.Print("%s: %s promoted, for revision %s\n", c.target, what, status.UpdateRevision)
	if status.StepTime == nil {
		c.Output.Print("  it is not finished: its pause is skipped when all of its pods are available\n")
	}
	return nil
}
