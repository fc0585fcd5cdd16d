package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// Action is one action on a container. Either Stop or Start is set.
type Action struct {
	Request *crr.Request
	Pod     *corev1.Pod
	Stop    *crr.Stop
	Start   *crr.Start
	// Wanted returns an error if nothing may be done for the request any more. The engine calls it before the action; an
	// action calls it again after everything that takes time.
	Wanted func() error
}

// Result is the result of an action.
type Result struct {
	Err       error
	Transient bool // the container runtime may become available again
	Unbegun   bool // the stop signal cannot have been sent
	Touched   bool // the pod was touched so that kubelet syncs it
}

// newAction returns the action of a decision, or nil if there is none.
func newAction(request *crr.Request, pod *corev1.Pod, decision crr.Decision) *Action {
	if decision.Stop == nil && decision.Start == nil {
		return nil
	}
	return &Action{Request: request, Pod: pod, Stop: decision.Stop, Start: decision.Start}
}

// Container returns the name of the container.
func (a Action) Container() string {
	if a.Stop != nil {
		return a.Stop.Container
	}
	return a.Start.Container
}

// stops returns the instance that the action stops, or zero.
func (a Action) stops() identity.ContainerID {
	if a.Stop != nil {
		return a.Stop.ID
	}
	return identity.ContainerID{}
}

// recorded reports whether the stored request has the instance that the action stops, or that has ended before a start.
func (a Action) recorded() bool {
	state, _ := crr.RecreateStateOf(a.Request, a.Container())
	if a.Stop != nil {
		return state.ContainerID == a.Stop.ID.String()
	}
	return state.ContainerID != ""
}

// key returns a text that is equal for equal actions, or "" for a touch of the pod, which may be repeated.
func (a Action) key() string {
	switch {
	case a.Stop != nil:
		return "stop " + a.Stop.ID.String()
	case len(a.Start.Remove) > 0:
		return fmt.Sprint("remove ", a.Start.Remove)
	default:
		return ""
	}
}

// PreStop runs the preStop hook of the instance to stop, and returns the rest of its grace period, which began at began.
// failed is called with the error of a hook: the container is stopped nevertheless. If the result has an error, the
// container must not be stopped.
func (a Action) PreStop(ctx context.Context, hooks *hook.Runner, began time.Time, failed func(error)) (time.Duration, Result) {
	call := hook.Call{Pod: a.Pod, Container: a.Stop.Container, ID: a.Stop.ID, Handler: a.Stop.PreStop, Timeout: a.Stop.Grace}
	err := hooks.Run(ctx, call)
	if ctx.Err() != nil { // this process ends: the next one runs the hook again
		return 0, Result{Err: fmt.Errorf("stop container %s: %w", a.Stop.Container, ctx.Err()), Transient: true}
	}
	if err != nil {
		failed(err)
	}
	if err := a.Wanted(); err != nil {
		hooks.Forget(a.Stop.ID) // the instance continues, so its next stop runs the hook again
		return 0, Result{Err: fmt.Errorf("container %s not stopped after its preStop hook: %w", a.Stop.Container, err), Transient: true}
	}
	return max(a.Stop.Grace-time.Since(began), kubelet.MinGracePeriod), Result{}
}

// begin performs an action in its own goroutine, because a stop can take the whole grace period. Without a slot, it only
// waits for one; after that the next step is planned again.
func (e *Engine) begin(ctx context.Context, pod identity.Pod, action Action, slot bool) {
	request := action.Request
	action.Wanted = func() error { return crr.MayAct(e.get(request.UID), e.ClockOffset(), time.Now()) }
	e.actionBegins(action)
	e.running.Go(func() {
		result, key := Result{}, ""
		if slot {
			result, key = e.runInSlot(ctx, pod, action), action.key()
		} else if err := e.slots.wait(ctx, pod); err != nil {
			result = Result{Err: err, Transient: true, Unbegun: true}
		} else {
			e.slots.keep(pod)
		}
		if result.Err != nil && ctx.Err() == nil {
			e.Logger.Warn("action failed", "pod", pod, "container", action.Container(), "request", request.Name, "err", result.Err)
		}
		e.actionEnded(action, result, key)
		e.Changed(pod)
	})
}

// runInSlot performs an action if its request is still wanted, and releases the slot.
func (e *Engine) runInSlot(ctx context.Context, pod identity.Pod, action Action) Result {
	defer e.slots.release(pod)
	if err := action.Wanted(); err != nil {
		return Result{Err: err, Transient: true, Unbegun: true}
	}
	return e.Actor.Act(ctx, action)
}
