package set

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/pull"
	"github.com/refit-project/refit/cli/set/change"
	"github.com/refit-project/refit/cli/turn"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
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
	// Turn is how the update waits until the pod may be taken out of service; By and Say are set by Update. Nil waits for nothing.
	Turn *turn.Config
	// Timeout is how long an update may take; zero for any time.
	Timeout time.Duration
	DryRun  bool
}

// Update changes a pod in place and follows that to its end. Nothing has been changed if the error is an
// [plan.RefusedError].
func Update(ctx context.Context, config Config, namespace string, target Target, to change.Change) error {
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, config.Timeout, fmt.Errorf("the update is %w", cli.ErrTimeout))
		defer cancel()
	}
	u := &updater{Config: config, change: to, pulls: config.Puller != nil, began: time.Now(), release: func(context.Context) {}}
	defer func() { u.release(ctx) }() // the claim is held until the pod is as ready as before, or back in its Services
	err := u.update(ctx, namespace, target.Name)
	if err != nil && ctx.Err() != nil {
		err = u.unfinished(ctx)
	}
	if err != nil && u.recorded {
		return u.withdraw(ctx, err)
	}
	return err
}

type updater struct {
	Config
	change change.Change
	asked  plan.Changes
	pod    *corev1.Pod
	pulls  bool // the new images are pulled before they are needed
	// recorded: the first write has been made.
	recorded bool
	// release removes the claim on the turn.
	release func(context.Context)
	// stored is the version of the pod for which the API server has stored nothing of a step.
	stored string
	// hindrance is the last reason why the update did not go on.
	hindrance string

	// before is the pod as it was, and down since when it is not ready.
	before *corev1.Pod
	began  time.Time
	down   time.Time
	unused time.Duration // how long the pod has not been ready
	ready  time.Time     // when it was for the first time
}

func (u *updater) update(ctx context.Context, namespace, name string) error {
	pod, err := u.API.Pod(ctx, namespace, name)
	if err != nil {
		return err
	}
	u.before = pod
	u.see(pod)
	if u.asked, err = u.change.Asked(pod); err != nil {
		return err
	}
	if err := u.check(); err != nil {
		return err
	}
	update, wanted, err := u.plan()
	if err != nil {
		return u.refused(ctx, err)
	}
	if err := u.mayDo(ctx, update); err != nil {
		return err
	}
	if err := u.try(ctx, update); err != nil {
		return err
	}
	u.explain(ctx, update, wanted)
	if u.DryRun {
		u.foretell(ctx, update)
		return nil
	}
	if err := u.pull(ctx, update); err != nil {
		return err
	}
	if err := u.begin(ctx); err != nil {
		return err
	}
	return u.finish(ctx)
}

// check refuses options that the pod cannot have.
func (u *updater) check() error {
	if u.Options.DrainSeconds > 0 && gate.Of(u.pod) == "" {
		return fmt.Errorf("%w: pod %s has no readiness gate KruisePodReady or InPlaceUpdateReady, so it cannot be drained: "+
			"add readinessGates to its template, or leave --drain-seconds out", cli.ErrUsage, u.pod.Name)
	}
	var named []string
	for _, group := range u.Options.Order {
		for _, name := range group {
			if template := plan.Template(u.pod); plan.Find(&template.Spec, name) == nil {
				return fmt.Errorf("--order: %w", change.NoContainer(template, name))
			}
			if slices.Contains(named, name) {
				return fmt.Errorf("%w: --order: container %s is named twice", cli.ErrUsage, name)
			}
			named = append(named, name)
		}
	}
	return nil
}

// plan is how the pod gets, from what it is now, to what was asked for and what other commands have recorded. The error is a
// [plan.RefusedError] if that is not possible.
func (u *updater) plan() (*plan.Update, *corev1.PodTemplateSpec, error) {
	recorded, err := record.Read(u.pod)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; if nobody else updates the pod, remove the annotation and try again", err)
	}
	wanted := record.Wanted(u.pod, recorded)
	if err := u.change(wanted); err != nil {
		return nil, nil, err
	}
	options := u.Options
	options.ImagesPresent = options.ImagesPresent || u.pulls
	update, err := plan.New(plan.Template(u.pod), wanted, options)
	if err != nil {
		return nil, nil, err
	}
	if ended := inplace.Ended(u.pod, &update); len(ended) > 0 {
		own := change.Restarted(u.pod, u.asked)
		for _, c := range u.asked.Containers {
			own = append(own, c.Container)
		}
		ended = slices.DeleteFunc(ended, func(r plan.Refusal) bool { return !slices.Contains(own, r.Container) })
		if len(ended) > 0 {
			return nil, nil, &plan.RefusedError{Refusals: ended}
		}
	}
	return &update, wanted, nil
}

// pull has the new images on the node. Where no daemon pulls them, kubelet does, when the container has been stopped; that is
// refused for a container that is not started again if it fails.
func (u *updater) pull(ctx context.Context, update *plan.Update) error {
	images := update.Images()
	for name := range images { // those that others have recorded are theirs to pull
		if !slices.ContainsFunc(u.asked.Containers, func(c plan.Change) bool { return c.Container == name && c.Image != "" }) {
			delete(images, name)
		}
	}
	if u.Puller == nil || len(images) == 0 {
		return nil
	}
	began := time.Now()
	err := u.Puller.Pull(ctx, u.pod, images, u.Output.Progress)
	switch {
	case errors.Is(err, pull.ErrNotBegun):
		u.pulls = false
		if _, _, refused := u.plan(); refused != nil {
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
	if err := u.superseded(); err != nil {
		return err
	}
	u.summary()
	return nil
}

// refused is what there is to do about a change that is none: perhaps to follow an update that was left.
func (u *updater) refused(ctx context.Context, err error) error {
	if !unchanged(err) || u.DryRun {
		return err
	}
	recorded, recordErr := record.Read(u.pod)
	known, factsErr := facts.Read(u.pod)
	if recordErr != nil || factsErr != nil || recorded == nil && gate.Closed(u.pod) == nil ||
		inplace.Next(u.pod, recorded, known, time.Now()).Kind == inplace.KindDone {
		return err
	}
	u.Output.Say("the change was requested before; waiting until it is done")
	return u.finish(ctx)
}

// unchanged reports whether a plan was refused because nothing is different.
func unchanged(err error) bool {
	var refused *plan.RefusedError
	return errors.As(err, &refused) && refused.Has(plan.ReasonNoChange)
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
