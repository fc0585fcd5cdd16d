package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/cli/turn"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/console"
)

// Puller pulls images to a node before they are needed; [pull.Jobs] implements it.
type Puller interface {
	// Pull returns when the node of the pod has the images. images is keyed by the name of the container. It reports
	// its progress. The error wraps [image.ErrNotBegun] if no daemon in the cluster pulls images in advance.
	Pull(ctx context.Context, pod *corev1.Pod, images map[string]string, progress func(text string)) error
}

// Config configures an update.
type Config struct {
	API    API
	Output *console.Output
	// Puller pulls new images before the first container is stopped. If it is nil, kubelet pulls them after the stop.
	Puller  Puller
	Options plan.Options
	// Turn configures how the update waits until the pod may become unavailable. Update sets By and Say. Nil means not
	// to wait.
	Turn *turn.Config
	// Timeout limits the duration of an update; zero means no limit.
	Timeout time.Duration
	DryRun  bool
}

// Update changes a pod in place and waits for the end of the update. If the error is a [plan.RefusedError], nothing has
// been changed.
func Update(ctx context.Context, config Config, namespace string, target Target, to change.Change) error {
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, config.Timeout, fmt.Errorf("the update is %w", console.ErrTimeout))
		defer cancel()
	}
	u := &updater{Config: config, change: to, pulls: config.Puller != nil, began: time.Now(), release: func(context.Context) {}}
	defer func() { u.release(ctx) }() // keep the claim until the pod is as ready as before, or no longer held back
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
	pulls  bool // new images are pulled in advance
	// recorded says that the first write has been made.
	recorded bool
	// release removes the claim of the turn.
	release func(context.Context)
	// stored is the version of the pod at which the API server stored nothing for a step.
	stored string
	// hindrance is the last reason why the update was blocked.
	hindrance string

	// before is the pod before the update, and down is since when it has not been ready.
	before *corev1.Pod
	began  time.Time
	down   time.Time
	unused time.Duration // how long the pod has not been ready
	ready  time.Time     // when the pod became ready for the first time
}

func (u *updater) update(ctx context.Context, namespace, name string) error {
	pod, err := u.API.Pod(ctx, namespace, name)
	var answered *apierrors.StatusError
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &answered):
		return answered // in the words of kubectl, as other commands
	case err != nil:
		return err
	}
	u.before = pod
	u.observePod(pod)
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
		u.printForecast(ctx, update)
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

// check refuses pods that are being deleted, and options that do not fit the pod.
func (u *updater) check() error {
	if u.pod.DeletionTimestamp != nil {
		return fmt.Errorf("%w: pod %s is being deleted", console.ErrRefused, u.pod.Name)
	}
	if u.Options.DrainSeconds > 0 && gate.Of(u.pod) == "" {
		return fmt.Errorf("%w: pod %s has no readiness gate KruisePodReady or InPlaceUpdateReady, so it cannot be drained: "+
			"add readinessGates to its template, or leave --drain-seconds out", console.ErrUsage, u.pod.Name)
	}
	var named, kept []string
	for _, container := range change.Running(plan.Template(u.pod)) {
		kept = append(kept, container.Name)
	}
	for _, group := range u.Options.Order {
		for _, name := range group {
			if !slices.Contains(kept, name) {
				return fmt.Errorf("%w: --order: the pod has no container %q that is kept running; it has %s", console.ErrUsage, name, strings.Join(kept, ", "))
			}
			if slices.Contains(named, name) {
				return fmt.Errorf("%w: --order: container %s is named twice", console.ErrUsage, name)
			}
			named = append(named, name)
		}
	}
	return nil
}

// plan returns how the pod gets from its present state to what was requested and what other commands have recorded. The
// error is a [plan.RefusedError] if that is not possible.
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
	var refused *plan.RefusedError
	if err != nil && (!errors.As(err, &refused) || !refused.Has(plan.ReasonRestartPolicyNever)) {
		return nil, nil, err
	}
	if ended := u.ended(); len(ended) > 0 { // this is the real reason for a container that may not be started again
		return nil, nil, &plan.RefusedError{Refusals: ended}
	}
	if err != nil {
		return nil, nil, err
	}
	return &update, wanted, nil
}

// ended returns refusals for requested changes of containers that have ended and that kubelet does not start again.
func (u *updater) ended() []plan.Refusal {
	own := change.Restarted(u.pod, u.asked)
	for _, c := range u.asked.Containers {
		own = append(own, c.Container)
	}
	slices.Sort(own)
	var of plan.Update
	for _, name := range slices.Compact(own) {
		of.Changes.Containers = append(of.Changes.Containers, plan.Change{Container: name})
	}
	return inplace.Ended(u.pod, &of)
}

// pull pulls the new images to the node. If no daemon pulls them, kubelet does after it has stopped the container; that
// is refused for a container that is not started again if the pull fails.
func (u *updater) pull(ctx context.Context, update *plan.Update) error {
	images := update.Images()
	for name := range images { // images recorded by other commands are pulled by those
		if !slices.ContainsFunc(u.asked.Containers, func(c plan.Change) bool { return c.Container == name && c.Image != "" }) {
			delete(images, name)
		}
	}
	if u.Puller == nil || len(images) == 0 || !scheduled(u.pod) {
		return nil
	}
	began := time.Now()
	err := u.Puller.Pull(ctx, u.pod, images, u.Output.Progress)
	switch {
	case errors.Is(err, image.ErrNotBegun):
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

// finish follows an update to its end and prints the final state of the pod.
func (u *updater) finish(ctx context.Context) error {
	if err := u.follow(ctx); err != nil {
		var refused *plan.RefusedError
		if errors.As(err, &refused) { // this part of the change has been dropped
			return err
		}
		return console.Begun(err)
	}
	if err := u.superseded(); err != nil {
		return err
	}
	u.summary()
	return nil
}

// refused handles a change that would change nothing: it resumes an interrupted update, if there is one. Other errors are returned.
func (u *updater) refused(ctx context.Context, err error) error {
	if !unchanged(err) {
		return err
	}
	begun, err := u.begun()
	switch {
	case err != nil:
		return err
	case !begun:
		u.Output.Say("pod/%s unchanged: it has what was asked for already", u.pod.Name)
		return nil
	case u.DryRun:
		u.Output.Say("the change was requested before; the command would wait until it is done")
		return nil
	}
	u.Output.Say("the change was requested before; waiting until it is done")
	return u.finish(ctx)
}

// begun reports whether an update of the pod has been begun and is not done.
func (u *updater) begun() (bool, error) {
	recorded, err := record.Read(u.pod)
	if err != nil || recorded == nil && gate.Closed(u.pod) == nil {
		return false, err
	}
	known, err := reported.Read(u.pod)
	return err == nil && inplace.Next(u.pod, recorded, known, time.Now()).Kind != inplace.KindDone, err
}

// unchanged reports whether a plan was refused because nothing is different.
func unchanged(err error) bool {
	var refused *plan.RefusedError
	return errors.As(err, &refused) && refused.Has(plan.ReasonNoChange)
}

// try sends the writes as dry runs and returns a refusal of the API server. Other errors are reported when the update
// is made.
func (u *updater) try(ctx context.Context, update *plan.Update) error {
	refused := &plan.RefusedError{}
	for _, trial := range inplace.Trials(u.pod, update) {
		if err := u.API.TryPatchPod(ctx, u.pod, trial.Subresource, trial.Patch()); final(err) {
			refused.Refusals = append(refused.Refusals, plan.Refusal{Reason: plan.ReasonInvalid, Why: trial.Message + ": " + err.Error()})
		}
	}
	if len(refused.Refusals) > 0 {
		return refused
	}
	return nil
}

// final reports whether a repetition would get the same answer from the API server.
func final(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
