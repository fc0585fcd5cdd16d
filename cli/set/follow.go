package set

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/wait"
)

// follow does what Next says until the update is done and the pod as ready as it was.
func (u *updater) follow(ctx context.Context) error {
	for {
		recorded, err := record.Read(u.pod)
		if err != nil {
			return err
		}
		known, err := facts.Read(u.pod)
		if err != nil {
			return err
		}
		decision := inplace.Next(u.pod, recorded, known, time.Now())
		switch decision.Kind {
		case inplace.KindStep:
			if err := u.apply(ctx, decision.Step); err != nil {
				return err
			}
			if decision.Step.Kind != inplace.StepRestart {
				continue
			}
		case inplace.KindDone:
			if kubelet.Ready(u.pod) || !kubelet.Ready(u.before) {
				return nil
			}
			u.Output.Wait("waiting for the pod to be ready")
		case inplace.KindBlocked:
			if decision.Final {
				return fmt.Errorf("%w: %s: %s", cli.ErrFailed, decision.Reason, decision.Message)
			}
			u.Output.Wait("%s: %s%s", decision.Reason, decision.Message, until(decision.Again))
		default:
			u.Output.Wait("%s", decision.Message)
		}
		if err := u.changed(ctx, decision.Again); err != nil {
			return err
		}
	}
}

func until(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; kubelet tries again at " + at.UTC().Format(time.TimeOnly)
}

// apply carries out a step. What the API server refuses for good is taken out of the record, so that the rest of the pod's
// updates are not held up by it.
func (u *updater) apply(ctx context.Context, step *inplace.Step) error {
	stored, err := inplace.Apply(ctx, u.API, u.pod, step)
	if err == nil {
		u.Output.Say("%s", step.Message)
		u.see(stored)
		return nil
	}
	if !final(err) {
		return u.again(ctx, err)
	}
	refusal := &plan.RefusedError{Refusals: []plan.Refusal{{Reason: plan.ReasonInvalid, Why: err.Error()}}}
	if step.Kind == inplace.StepDrain || step.Kind == inplace.StepMarkReady {
		return refusal
	}
	if err := u.begin(ctx, &plan.Update{}); err != nil {
		return errors.Join(refusal, err)
	}
	u.Output.Say("refused by the API server; what has not been begun is dropped")
	return errors.Join(refusal, u.follow(ctx))
}

// relist bounds how long a lost watch goes unnoticed.
const relist = 10 * time.Second

// changed returns when the pod has changed, or the time has come.
func (u *updater) changed(ctx context.Context, at time.Time) error {
	limit := relist
	if !at.IsZero() {
		limit = min(limit, max(time.Until(at), 0))
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	changes, err := u.API.WatchPod(waiting, u.pod)
	if err == nil {
		defer changes.Stop()
		for {
			event, ok := u.next(waiting, changes)
			if !ok {
				break
			}
			if pod, isPod := event.Object.(*corev1.Pod); isPod && event.Type == watch.Modified {
				u.see(pod)
				return nil
			}
			if event.Type == watch.Deleted {
				return fmt.Errorf("%w: the pod has been deleted", cli.ErrFailed)
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return u.read(ctx)
}

// read reads the pod again. While the API server cannot be reached it tries again: the pod may be out of its Services, and nobody
// else goes on with its update.
func (u *updater) read(ctx context.Context) error {
	for {
		pod, err := u.API.Pod(ctx, u.pod.Namespace, u.pod.Name)
		switch {
		case err == nil && pod.UID != u.pod.UID:
			return fmt.Errorf("%w: the pod has been replaced by another of its name", cli.ErrFailed)
		case err == nil:
			u.see(pod)
			return nil
		case !cli.Unreachable(err):
			return err
		}
		u.Output.Wait("trying again until the API server can be reached: %s", err)
		if err := wait.For(ctx, wait.RetryDelay); err != nil {
			return err
		}
	}
}

func (u *updater) next(ctx context.Context, changes watch.Interface) (watch.Event, bool) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return watch.Event{}, false
		case event, ok := <-changes.ResultChan():
			return event, ok && event.Type != watch.Error
		case <-second.C:
			u.Output.Tick()
		}
	}
}

// see takes over a pod that has been read, and counts how long it is not ready.
func (u *updater) see(pod *corev1.Pod) {
	u.pod = pod
	switch now := time.Now(); {
	case kubelet.Ready(pod) && !u.down.IsZero():
		u.unused += now.Sub(u.down)
		u.down = time.Time{}
	case !kubelet.Ready(pod) && u.down.IsZero() && kubelet.Ready(u.before):
		u.down = now
	}
}
