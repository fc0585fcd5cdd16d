package inpod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
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

var errHidden = errors.New("its processes cannot be seen: the pod does not share its PID namespace (shareProcessNamespace), or hides cgroups")

// unstoppable returns why the sidecar cannot stop an instance, or nil.
func (e *executor) unstoppable(ctx context.Context, container string, id identity.ContainerID) error {
	if container == e.own {
		return errors.New("the sidecar does not stop itself")
	}
	found, err := e.processes.Find(ctx, first(id))
	if errors.Is(err, signal.ErrNotFound) {
		return errHidden
	}
	if err != nil {
		return err
	}
	return e.processes.Check(found[0])
}

// stop stops one instance as kubelet would: preStop hook within the grace period, SIGTERM, SIGKILL. It sends no signal
// if wanted returns an error after the preStop hook.
func (e *executor) stop(ctx context.Context, pod *corev1.Pod, order crr.Stop, wanted func() error) error {
	began := time.Now()
	found, err := e.processes.Find(ctx, first(order.ID))
	if errors.Is(err, signal.ErrNotFound) {
		return nil // it has ended; the pod's status will show it
	}
	if err != nil {
		return fmt.Errorf("stop container %s: %w", order.Container, err)
	}
	grace := order.Grace
	if order.PreStop != nil && grace > 0 {
		call := hook.Call{Pod: pod, Container: order.Container, ID: order.ID, Handler: order.PreStop, Timeout: grace}
		err := e.hooks.Run(ctx, call)
		if ctx.Err() != nil { // this process ends: the next sidecar runs the hook again
			return wrap(order.Container, ctx.Err())
		}
		if err != nil {
			e.logger.Warn("preStop hook failed", "container", order.Container, "err", err)
			e.warn("FailedPreStopHook", fmt.Sprintf("container %s: %v", order.Container, err))
		}
		if err := wanted(); err != nil {
			return fmt.Errorf("container %s not stopped after its preStop hook: %w", order.Container, err)
		}
		grace = max(grace-time.Since(began), kubelet.MinGracePeriod)
	}
	if grace > 0 {
		if gone, err := e.signal(ctx, found[0], syscall.SIGTERM, grace); gone || err != nil {
			return wrap(order.Container, err)
		}
	}
	gone, err := e.signal(ctx, found[0], syscall.SIGKILL, killPatience)
	if err == nil && !gone {
		err = errors.New("it is still running after KILL")
	}
	return wrap(order.Container, err)
}

func wrap(container string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stop container %s: %w", container, err)
}

// signal sends a signal and waits up to patience for the process to end.
func (e *executor) signal(ctx context.Context, p signal.Process, sig syscall.Signal, patience time.Duration) (gone bool, err error) {
	if err := e.processes.Send(p, sig); errors.Is(err, signal.ErrGone) {
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
			if errors.Is(e.processes.Check(p), signal.ErrGone) {
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
