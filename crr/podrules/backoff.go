package podrules

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kubelet"
)

// SkipsBackoff reports whether a restart for this request is to start at once, although kubelet would hold it back like a
// crash. respect is what holds for a request that does not say.
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

// WaitingFor says what kubelet is waiting for before it starts the container, in words that do not change
// while it waits.
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

// BackoffMessage says until when kubelet holds a container back.
func BackoffMessage(until time.Time) string {
	return "kubelet back-off until " + until.UTC().Format(time.RFC3339)
}
