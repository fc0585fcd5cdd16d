package requests

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hook"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
)

// NewHooks makes a runner of preStop hooks in the node's containers.
func NewHooks(runtime Runtime) *hook.Runner {
	return hook.New(hook.Config{Executor: hookRuntime{runtime}, Addresses: hookRuntime{runtime}})
}

// hookRuntime has the ports of hook.Config.
type hookRuntime struct{ runtime Runtime }

// Exec implements hook.Executor.
func (h hookRuntime) Exec(ctx context.Context, id identity.ContainerID, command []string, timeout time.Duration) (hook.Output, error) {
	result, err := h.runtime.ExecSync(ctx, id.ID, command, timeout)
	return hook.Output{Stdout: result.Stdout, Stderr: result.Stderr, ExitCode: result.ExitCode}, err
}

// PodIP is the sandbox's, else what the pod's status says, as for a pod in the node's network.
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
