package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kubelet"
)

// exitCodeKilled and exitCodeTerminated are those of a program that a signal ended: 128 and the signal's number.
const (
	exitCodeKilled     = 128 + 9
	exitCodeTerminated = 128 + 15
)

// endsForGood says why a stop could end the container instead of restarting it; empty: it cannot. What a program makes of
// TERM is not known beforehand: it may exit well, be ended by the signal, or be killed later.
func endsForGood(policy kubelet.RestartPolicy, grace time.Duration) string {
	codes := []int32{exitCodeKilled}
	if grace > 0 {
		codes = []int32{0, exitCodeTerminated, exitCodeKilled}
	}
	for _, code := range codes {
		if policy.Restarts(code) {
			continue
		}
		why := fmt.Sprintf("restartPolicy %s would not start it again after exit code %d", policy.Policy, code)
		if code != exitCodeKilled && policy.Restarts(exitCodeKilled) {
			why += fmt.Sprintf("; with terminationGracePeriodSeconds 0 it is killed, exits with code %d, and is started", exitCodeKilled)
		}
		return why
	}
	return ""
}

// OverridesRestartPolicy reports whether the request asks for a restart even where the restart policy forbids it.
func OverridesRestartPolicy(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Annotations[v1beta1.AnnotationRestartPolicy] == v1beta1.RestartPolicyOverride
}

// overrides reports whether this request is to bring a container back even where its restart policy forbids it.
func (p *planner) overrides() bool {
	return !p.options.SignalsOnly && OverridesRestartPolicy(p.request)
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
