package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/pull"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/wait"
)

// Puller has images on a node before they are needed; [pull.Jobs] has it.
type Puller interface {
	// Pull returns when the node of the pod has the images, which are named by the container they are for. It
	// reports its progress. The error wraps [pull.ErrNotBegun] if no daemon in the cluster pulls images before they are needed.
	Pull(ctx context.Context, pod *corev1.Pod, images map[string]string, progress func(text string)) error
}

// Config is what an update needs.
type Config struct {
	API    API
	Output *cli.Output
	// Puller pulls new images before the first container is stopped; nil leaves that to kubelet, which does it afterwards.
	Puller  Puller
	Options plan.Options
	// Timeout is how long an update may take; zero for any time.
	Timeout time.Duration
	DryRun  bool
}

// Update changes a pod in place and follows that to its end. Nothing has been changed if the error is an
// [plan.RefusedError].
func Update(ctx context.Context, config Config, namespace string, target Target, change Change) error {
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, config.Timeout, cli.ErrTimeout)
		defer cancel()
	}
	u := &updater{Config: config}
	err := u.update(ctx, namespace, target.Name, change)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w; last: %s", context.Cause(ctx), cmp.Or(config.Output.Last(), "nothing"))
	}
	return err
}

type updater struct {
	Config
	pod *corev1.Pod
	// before is the pod as it was, and down since when it is not ready.
	before *corev1.Pod
	down   time.Time
	unused time.Duration // how long the pod has not been ready
}

func (u *updater) update(ctx context.Context, namespace, name string, change Change) error {
	pod, err := u.API.Pod(ctx, namespace, name)
	if err != nil {
		return err
	}
	u.pod, u.before = pod, pod
	recorded, err := record.Read(pod)
	if err != nil {
		return fmt.Errorf("%w; if nobody else updates the pod, remove the annotation and try again", err)
	}
	running := plan.Template(pod)
	wanted := record.Wanted(pod, recorded)
	if err := change(wanted); err != nil {
		return err
	}
	options := u.Options
	options.ImagesPresent = options.ImagesPresent || u.Puller != nil
	update, err := plan.New(running, wanted, options)
	if err != nil {
		return u.refused(ctx, err, recorded)
	}
	if err := u.try(ctx, &update); err != nil {
		return err
	}
	u.explain(ctx, &update, wanted)
	if u.DryRun {
		return nil
	}
	if err := u.pull(ctx, &update, wanted); err != nil {
		return err
	}
	if err := u.begin(ctx, &update); err != nil {
		return err
	}
	return u.finish(ctx)
}

// pull has the new images on the node. Where no daemon pulls them, kubelet does, when the container has been stopped; that is
// refused for a container that is not started again if it fails.
func (u *updater) pull(ctx context.Context, update *plan.Update, wanted *corev1.PodTemplateSpec) error {
	images := update.Images()
	if u.Puller == nil || len(images) == 0 {
		return nil
	}
	began := time.Now()
	err := u.Puller.Pull(ctx, u.pod, images, u.Output.Progress)
	switch {
	case errors.Is(err, pull.ErrNotBegun):
		if _, refused := plan.New(plan.Template(u.pod), wanted, u.Options); refused != nil {
			return errors.Join(refused, err)
		}
		u.Output.Say("the image is pulled while its container is down: %s", err)
	case err != nil:
		return fmt.Errorf("pull images, the pod has not been changed: %w", err)
	default:
		u.Output.Say("node %s has the new images, after %.1f s", u.pod.Spec.NodeName, time.Since(began).Seconds())
	}
	return u.read(ctx)
}

// finish follows an update to its end and prints the state of the pod then.
func (u *updater) finish(ctx context.Context) error {
	if err := u.follow(ctx); err != nil {
		return err
	}
	u.summary()
	return nil
}

// refused is what there is to do about a change that is none: perhaps to follow an update that was left.
func (u *updater) refused(ctx context.Context, err error, recorded *record.Record) error {
	var refused *plan.RefusedError
	if !errors.As(err, &refused) || !refused.Has(plan.ReasonNoChange) || recorded == nil || u.DryRun {
		return err
	}
	known, factsErr := facts.Read(u.pod)
	if factsErr != nil || inplace.Next(u.pod, recorded, known, time.Now()).Kind == inplace.KindDone {
		return err
	}
	u.Output.Say("the change was requested before; waiting until it is done")
	return u.finish(ctx)
}

// try asks the API server what it would refuse. Whatever else it answers shows when the update is made.
func (u *updater) try(ctx context.Context, update *plan.Update) error {
	refused := &plan.RefusedError{}
	for _, trial := range inplace.Trials(u.pod, update) {
		if err := u.API.TryPatchPod(ctx, u.pod, trial.Subresource, trial.Patch); final(err) {
			refused.Refusals = append(refused.Refusals, plan.Refusal{Reason: plan.ReasonInvalid, Why: trial.Message + ": " + err.Error()})
		}
	}
	if len(refused.Refusals) > 0 {
		return refused
	}
	return nil
}

// final reports whether the API server would answer the same again.
func final(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// begin makes the first steps, up to the one that writes the record. A status that kubelet writes meanwhile is no reason to
// give up.
func (u *updater) begin(ctx context.Context, update *plan.Update) error {
	for {
		step, err := inplace.Start(u.pod, update, time.Now())
		if err != nil {
			return err
		}
		stored, err := inplace.Apply(ctx, u.API, u.pod, step)
		if err != nil {
			if err := u.again(ctx, err); err != nil {
				return err
			}
			continue
		}
		u.see(stored)
		if step.Kind != inplace.StepRecord {
			u.Output.Say("%s", step.Message)
		}
		if step.Kind != inplace.StepDrain {
			return nil
		}
	}
}

// again reads the pod again if that is all that is wrong, or if the API server could not be reached: it may have made the write.
func (u *updater) again(ctx context.Context, err error) error {
	if cli.Unreachable(err) {
		u.Output.Wait("trying again until the API server can be reached: %s", err)
		if err := wait.For(ctx, wait.RetryDelay); err != nil {
			return err
		}
	} else if !apierrors.IsConflict(err) && !errors.Is(err, inplace.ErrChanged) {
		return err
	}
	return u.read(ctx)
}
