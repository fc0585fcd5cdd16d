package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kubelet"
)

// overrides reports whether the request asks for a restart even where the restart policy forbids it.
func overrides(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Annotations[v1beta1.AnnotationRestartPolicy] == v1beta1.RestartPolicyOverride
}

// skipsBackoff reports whether a restart for this request is to start at once, although kubelet would hold it
// back like a crash.
func skipsBackoff(request *v1beta1.ContainerRecreateRequest, options Options) bool {
	switch request.Annotations[v1beta1.AnnotationRestartBackoff] {
	case v1beta1.RestartBackoffSkip:
		return true
	case v1beta1.RestartBackoffRespect:
		return false
	default:
		return !options.RespectBackoff
	}
}

// delaysRestart reports whether kubelet would delay the start after the end of this instance.
func delaysRestart(instance Instance, end time.Time) bool {
	return kubelet.DelaysRestart(instance.RestartCount, end.Sub(instance.StartedAt))
}

// waitingFor says what kubelet is waiting for before it starts the container, in words that do not change
// while it waits.
func waitingFor(status *corev1.ContainerStatus) string {
	const text = "waiting for kubelet to start it"
	if until := kubelet.BackoffUntil(status); !until.IsZero() {
		return fmt.Sprintf("%s: kubelet back-off until %s", text, until.UTC().Format(time.RFC3339))
	}
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		return text + ": " + status.State.Waiting.Reason
	}
	return text
}
