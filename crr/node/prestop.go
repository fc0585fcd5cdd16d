package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// preStop runs the preStop hook of the instance to stop and returns the remaining grace period. It skips the hook of an
// instance that has ended while waiting for a slot: the next instance may have its address.
func (w *Worker) preStop(ctx context.Context, logger *slog.Logger, request *crr.Request, pod *corev1.Pod, stop crr.Stop) (time.Duration, outcome) {
	if stop.PreStop == nil || stop.Grace == 0 {
		return stop.Grace, outcome{}
	}
	begun := time.Now()
	status, err := w.runtime.ContainerStatus(ctx, stop.ID.ID)
	switch {
	case errors.Is(err, cri.ErrNotFound), err == nil && status.State == identity.StateExited:
		return stop.Grace, outcome{}
	case err != nil:
		failed := failure("look at container "+stop.Container, err)
		failed.unbegun = true
		return 0, failed
	}
	call := hook.Call{Pod: pod, Container: stop.Container, ID: stop.ID, Handler: stop.PreStop, Timeout: stop.Grace}
	if err := w.hooks.Run(ctx, call); err != nil {
		logger.Warn("preStop hook failed", "err", err)
		w.report.FailedPreStopHook(pod, stop.Container, err)
	}
	if err := w.wanted(request); err != nil {
		w.hooks.Forget(stop.ID)
		return 0, outcome{err: fmt.Errorf("not stopped after its preStop hook: %w", err), transient: true}
	}
	return max(stop.Grace-time.Since(begun), kubelet.MinGracePeriod), outcome{}
}

// NewHooks returns a runner of preStop hooks in the node's containers.
func NewHooks(runtime Runtime) *hook.Runner {
	return hook.New(hook.Config{Executor: hookRuntime{runtime}, Addresses: hookRuntime{runtime}})
}

// hookRuntime implements the ports of hook.Config.
type hookRuntime struct{ runtime Runtime }

// Exec implements hook.Executor.
func (h hookRuntime) Exec(ctx context.Context, id identity.ContainerID, command []string, timeout time.Duration) (hook.Output, error) {
	result, err := h.runtime.ExecSync(ctx, id.ID, command, timeout)
	return hook.Output{Stdout: result.Stdout, Stderr: result.Stderr, ExitCode: result.ExitCode}, err
}

// PodIP returns the address of the sandbox, or else the address in the pod's status, which pods in the host network need.
func (h hookRuntime) PodIP(ctx context.Context, pod *corev1.Pod) (string, error) {
	ip, err := h.runtime.SandboxIP(ctx, kubelet.RuntimePodUID(pod))
	if err == nil && ip != "" {
		return ip, nil
	}
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP, nil
	}
	return "", errors.Join(errors.New("the pod has no IP"), err)
}
