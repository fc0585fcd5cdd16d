package set

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/set/change"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/wait"
)

// begin makes the first steps, up to the one that writes the record: before that nothing of the pod is changed but, perhaps, the
// condition of its readiness gate. After each conflict, as with another command, the plan is made again.
func (u *updater) begin(ctx context.Context) error {
	for {
		update, _, err := u.plan()
		if unchanged(err) {
			return nil // another command has asked for the same
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
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case cli.Unreachable(err):
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

// follow does what Next says until the update is done and the pod as ready as it was. Containers that others have changed, and that
// do not start, are theirs.
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

// blocked reports whether the command has nothing to wait for: what it has asked for holds, and something else does not go on.
func (u *updater) blocked(decision *inplace.Decision, recorded *record.Record, known facts.Facts) (done bool, err error) {
	ended := decision.Reason == inplace.BlockedPodEnded
	if !ended && u.superseded() == nil && inplace.Settled(u.pod, recorded, known, time.Now(), change.Restarted(u.pod, u.asked), change.Resizes(u.asked)) {
		u.Output.Say("not of this change: %s: %s", decision.Reason, decision.Message)
		return true, nil
	}
	if decision.Final {
		err := fmt.Errorf("%w: %s: %s", cli.ErrFailed, decision.Reason, decision.Message)
		if now := u.superseded(); now != nil && !u.pending(recorded) {
			return false, errors.Join(now, err)
		}
		return false, err
	}
	u.hindrance = decision.Reason + ": " + decision.Message
	u.Output.Wait("%s%s", u.hindrance, until(decision.Again))
	return false, nil
}

// pending reports whether the pod gets what was asked for when all that is recorded has been written.
func (u *updater) pending(recorded *record.Record) bool {
	return len(change.Different(record.Wanted(u.pod, recorded), u.asked)) == 0
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
	dropped, dropErr := u.write(ctx, func(pod *corev1.Pod) (*inplace.Step, error) { return inplace.Drop(pod, step, time.Now()) })
	if dropErr != nil || !dropped {
		return errors.Join(refusal, dropErr)
	}
	u.Output.Say("refused by the API server; it is dropped")
	return errors.Join(refusal, u.follow(ctx))
}

// write makes one write, decided again after each conflict; it reports whether there was anything to be written.
func (u *updater) write(ctx context.Context, decide func(*corev1.Pod) (*inplace.Step, error)) (bool, error) {
	for {
		step, err := decide(u.pod)
		if err != nil || step == nil {
			return false, err
		}
		stored, err := inplace.Apply(ctx, u.API, u.pod, step)
		if err == nil {
			u.see(stored)
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
	if err != nil { // no watch: not at once, since the pod has been read just now
		if err := wait.For(waiting, wait.RetryDelay); err != nil && ctx.Err() != nil {
			return ctx.Err()
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
		case ctx.Err() != nil: // the end of the command, not of the API server
			return ctx.Err()
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
