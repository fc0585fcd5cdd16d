package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wait"
)

// begin performs the first steps, up to the one that writes the record. Before that at most the condition of the pod's
// readiness gate is changed. After each conflict, for example with another command, it plans again.
func (u *updater) begin(ctx context.Context) error {
	for {
		update, _, err := u.plan()
		if unchanged(err) {
			return nil // another command has requested the same
		}
		if err != nil {
			return err
		}
		if waited, err := u.turn(ctx, update); err != nil {
			return err
		} else if waited {
			continue
		}
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
		u.recorded = true
		u.observePod(stored)
		if step.Kind != inplace.StepRecord {
			u.Output.Say("%s", step.Message)
		}
		if step.Kind != inplace.StepDrain {
			return nil
		}
	}
}

// again reads the pod again if err is a conflict, or if the API server could not be reached, because the write may have
// succeeded. It returns other errors.
func (u *updater) again(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case console.Unreachable(err):
		u.Output.Wait("trying again until the API server can be reached: %s", err)
		if err := wait.For(ctx, wait.RetryDelay); err != nil {
			return err
		}
	case errors.Is(err, inplace.ErrStoredNothing):
		u.stored = u.pod.ResourceVersion
		return nil
	case !apierrors.IsConflict(err) && !errors.Is(err, inplace.ErrChanged):
		return err
	}
	return u.read(ctx)
}

// follow performs the steps that Next returns until the update is done and the pod is as ready as before. It does not
// wait for containers that other writers have changed and that do not start.
func (u *updater) follow(ctx context.Context) error {
	for {
		recorded, err := record.Read(u.pod)
		if err != nil {
			return err
		}
		known, err := reported.Read(u.pod)
		if err != nil {
			return err
		}
		decision := inplace.Next(u.pod, recorded, known, time.Now())
		switch decision.Kind {
		case inplace.KindStep:
			if u.stored != "" && u.stored == u.pod.ResourceVersion {
				u.Output.Wait("waiting for the pod to change: the API server has stored nothing of: %s", decision.Message)
				break
			}
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
			if done, err := u.blocked(&decision, recorded, known); done || err != nil {
				return err
			}
		default:
			u.Output.Wait("%s", decision.Message)
		}
		if err := u.changed(ctx, decision.Again); err != nil {
			return err
		}
	}
}

// blocked reports whether the command has nothing to wait for: what it has requested is done, and something else is stuck.
func (u *updater) blocked(decision *inplace.Decision, recorded *record.Record, known reported.Containers) (done bool, err error) {
	ended := decision.Reason == inplace.BlockedPodEnded
	if !ended && u.superseded() == nil && inplace.Settled(u.pod, recorded, known, time.Now(), change.Restarted(u.pod, u.asked), change.Resizes(u.asked)) {
		u.Output.Say("not of this change: %s: %s", decision.Reason, decision.Message)
		return true, nil
	}
	if decision.Final {
		err := fmt.Errorf("%w: %s: %s", console.ErrFailed, decision.Reason, decision.Message)
		if now := u.superseded(); now != nil && !u.pending(recorded) {
			return false, errors.Join(now, err)
		}
		return false, err
	}
	u.hindrance = decision.Reason + ": " + decision.Message
	u.Output.Wait("%s%s", u.hindrance, until(decision.Again))
	return false, nil
}

// pending reports whether the pod will have what was requested after everything in the record has been written.
func (u *updater) pending(recorded *record.Record) bool {
	return len(change.Different(record.Wanted(u.pod, recorded), u.asked)) == 0
}

func until(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; kubelet tries again at " + at.UTC().Format(time.TimeOnly)
}

// apply performs a step. If the API server refuses a write permanently, apply removes it from the record, so that it
// does not delay the other updates of the pod.
func (u *updater) apply(ctx context.Context, step *inplace.Step) error {
	stored, err := inplace.Apply(ctx, u.API, u.pod, step)
	if err == nil {
		u.Output.Say("%s", step.Message)
		u.observePod(stored)
		return nil
	}
	if !final(err) {
		return u.again(ctx, err)
	}
	refusal := &plan.RefusedError{Refusals: []plan.Refusal{{Reason: plan.ReasonInvalid, Why: err.Error()}}}
	dropped, dropErr := u.write(ctx, func(pod *corev1.Pod) (*inplace.Step, error) { return inplace.Drop(pod, step, time.Now()) })
	if dropErr != nil || !dropped {
		return errors.Join(refusal, dropErr)
	}
	u.Output.Say("refused by the API server; it is dropped")
	return errors.Join(refusal, u.follow(ctx))
}

// write performs one write, and decides again after each conflict. It reports whether there was anything to write.
func (u *updater) write(ctx context.Context, decide func(*corev1.Pod) (*inplace.Step, error)) (bool, error) {
	for {
		step, err := decide(u.pod)
		if err != nil || step == nil {
			return false, err
		}
		stored, err := inplace.Apply(ctx, u.API, u.pod, step)
		if err == nil {
			u.observePod(stored)
			return true, nil
		}
		if errors.Is(err, inplace.ErrStoredNothing) {
			return false, nil
		}
		if err := u.again(ctx, err); err != nil {
			return false, err
		}
	}
}

// relist is after how long a pod is read again in case its watch was lost.
const relist = 10 * time.Second

// changed returns when the pod has changed or the time at has come.
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
				u.observePod(pod)
				return nil
			}
			if event.Type == watch.Deleted {
				return fmt.Errorf("%w: the pod has been deleted", console.ErrFailed)
			}
		}
	}
	if err != nil { // no watch; wait, because the pod has just been read
		if err := wait.For(waiting, wait.RetryDelay); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return u.read(ctx)
}

// read reads the pod again. While the API server cannot be reached it retries: the pod may be not ready because of the
// update, and nobody else continues the update.
func (u *updater) read(ctx context.Context) error {
	for {
		pod, err := u.API.Pod(ctx, u.pod.Namespace, u.pod.Name)
		switch {
		case err == nil && pod.UID != u.pod.UID:
			return fmt.Errorf("%w: the pod has been replaced by another of its name", console.ErrFailed)
		case err == nil:
			u.observePod(pod)
			return nil
		case ctx.Err() != nil: // the command was interrupted
			return ctx.Err()
		case !console.Unreachable(err):
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
