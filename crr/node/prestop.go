package node

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

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

// PodIP returns the address of the sandbox, for a pod in the host network the address in its status: whoever may write the
// status of another pod can put any address there.
func (h hookRuntime) PodIP(ctx context.Context, pod *corev1.Pod) (string, error) {
	ip, err := h.runtime.SandboxIP(ctx, kubelet.RuntimePodUID(pod))
	if err == nil && ip != "" {
		return ip, nil
	}
	if pod.Spec.HostNetwork && pod.Status.PodIP != "" {
		return pod.Status.PodIP, nil
	}
	return "", errors.Join(errors.New("the pod has no IP"), err)
}
