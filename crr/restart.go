package crr

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/kubelet"
)

// overrides reports whether this request is to bring a container back even where its restart policy forbids it.
func (p *planner) overrides() bool {
	return !p.options.SignalsOnly && podrules.OverridesRestartPolicy(p.request)
}

// skipsBackoff reports whether a restart for this request is to start at once, although kubelet would hold it
// back like a crash.
func (p *planner) skipsBackoff() bool {
	if p.options.SignalsOnly {
		return false
	}
	switch p.request.Annotations[v1beta1.AnnotationRestartBackoff] {
	case v1beta1.RestartBackoffSkip:
		return true
	case v1beta1.RestartBackoffRespect:
		return false
	default:
		return !p.options.RespectBackoff
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
		return text + ": " + backoffMessage(until)
	}
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		return text + ": " + status.State.Waiting.Reason
	}
	return text
}

func backoffMessage(until time.Time) string {
	return "kubelet back-off until " + until.UTC().Format(time.RFC3339)
}
