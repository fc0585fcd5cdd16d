package inpod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
)

const (
	// look is the interval between checks whether a signalled process has ended.
	look = 50 * time.Millisecond
	// killPatience is how long to wait for the exit after SIGKILL.
	killPatience = 10 * time.Second
)

// Processes finds and signals processes of the pod; *signal.FS implements it.
type Processes interface {
	Find(ctx context.Context, sel signal.Selector) ([]signal.Process, error)
	Send(p signal.Process, sig syscall.Signal) error
	Check(p signal.Process) error
}

// first returns a selector for the first process of an instance. The container ends with this process.
func first(id identity.ContainerID) signal.Selector {
	return signal.Selector{Container: id, Choice: signal.Oldest}
}

// actor implements engine.Actor with signals.
type actor struct {
	processes Processes
	hooks     *hook.Runner
	warn      func(reason, message string)
	guard     *guard.Guard
	logger    *slog.Logger
}

// Act implements engine.Actor.
func (a *actor) Act(ctx context.Context, action engine.Action) (result engine.Result) {
	stop := action.Stop
	if stop == nil { // crr.Plan decides no start with Options.SignalsOnly
		return engine.Result{Err: errors.New("a container cannot be started from its pod")}
	}
	a.logger.Info("stopping container", "container", stop.Container, "id", stop.ID.String(), "grace", stop.Grace,
		"request", action.Request.Name, requester.LogAttributes(action.Request))
	err := plugin.Safely(a.guard, Name, func() error { result = a.stop(ctx, action); return nil })
	if err != nil {
		return engine.Result{Err: err}
	}
	return result
}

// stop stops one instance as kubelet would: preStop hook within the grace period, SIGTERM, SIGKILL. It sends no signal
// if the request is not wanted any more after the preStop hook.
func (a *actor) stop(ctx context.Context, action engine.Action) engine.Result {
	began, stop := time.Now(), action.Stop
	found, err := a.processes.Find(ctx, first(stop.ID))
	if errors.Is(err, signal.ErrNotFound) {
		return engine.Result{} // it has ended; the pod's status will show it
	}
	if err != nil {
		return engine.Result{Err: fmt.Errorf("stop container %s: %w", stop.Container, err)}
	}
	grace := stop.Grace
	if stop.PreStop != nil && grace > 0 {
		var result engine.Result
		grace, result = action.PreStop(ctx, a.hooks, began, func(err error) {
			a.logger.Warn("preStop hook failed", "container", stop.Container, "err", err)
			a.warn("FailedPreStopHook", fmt.Sprintf("container %s: %v", stop.Container, err))
		})
		if result.Err != nil {
			return result
		}
	}
	if err := a.end(ctx, found[0], grace); err != nil {
		return engine.Result{Err: fmt.Errorf("stop container %s: %w", stop.Container, err)}
	}
	return engine.Result{}
}

// end ends a process by SIGTERM, and by SIGKILL after the grace period.
func (a *actor) end(ctx context.Context, p signal.Process, grace time.Duration) error {
	if grace > 0 {
		if gone, err := a.signal(ctx, p, syscall.SIGTERM, grace); gone || err != nil {
			return err
		}
	}
	gone, err := a.signal(ctx, p, syscall.SIGKILL, killPatience)
	if err == nil && !gone {
		err = errors.New("it is still running after KILL")
	}
	return err
}

// signal sends a signal and waits up to patience for the process to end.
func (a *actor) signal(ctx context.Context, p signal.Process, sig syscall.Signal, patience time.Duration) (gone bool, err error) {
	if err := a.processes.Send(p, sig); errors.Is(err, signal.ErrGone) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-deadline.C:
			return false, nil
		case <-ticker.C:
			if errors.Is(a.processes.Check(p), signal.ErrGone) {
				return true, nil
			}
		}
	}
}

// podStatus returns the address of a pod from its status. The pod's own loopback address would answer too.
type podStatus struct{}

// PodIP implements hook.Addresses.
func (podStatus) PodIP(_ context.Context, pod *corev1.Pod) (string, error) {
	return cmp.Or(pod.Status.PodIP, "127.0.0.1"), nil
}
