package podrules

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// SkipsBackoff reports whether a restart for this request starts at once, although kubelet would delay it like a crash.
// respect is the default for requests that do not say.
func SkipsBackoff(request *v1beta1.ContainerRecreateRequest, respect bool) bool {
	switch request.Annotations[v1beta1.AnnotationRestartBackoff] {
	case v1beta1.RestartBackoffSkip:
		return true
	case v1beta1.RestartBackoffRespect:
		return false
	default:
		return !respect
	}
}

// WaitingFor returns what kubelet waits for before it starts the container. The text does not change during the wait.
func WaitingFor(status *corev1.ContainerStatus) string {
	const text = "waiting for kubelet to start it"
	if until := kubelet.BackoffUntil(status); !until.IsZero() {
		return text + ": " + BackoffMessage(until)
	}
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		return text + ": " + status.State.Waiting.Reason
	}
	return text
}

// BackoffMessage returns a message that says until when kubelet delays the start of a container.
func BackoffMessage(until time.Time) string {
	return "kubelet back-off until " + until.UTC().Format(time.RFC3339)
}
