package crr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// BackoffMemory is how long kubelet remembers a restart: the start after an exit is delayed (10 s, 20 s … 300 s)
// unless the container had been up so long. Twice kubelet's longest back-off, MaxCrashLoopBackOff.
const BackoffMemory = 10 * time.Minute

// reasonCrashLoopBackOff is kubelet's ContainerStateWaiting.Reason while it delays a restart.
const reasonCrashLoopBackOff = "CrashLoopBackOff"

// restartPolicy is what kubelet will do about an exit of the container, see KEP-753 (native sidecars) and
// KEP-5307 (policy and rules of one container).
type restartPolicy struct {
	policy corev1.ContainerRestartPolicy
	rules  []corev1.ContainerRestartRule
}

func restartPolicyOf(pod *corev1.Pod, name string) restartPolicy {
	of := restartPolicy{policy: corev1.ContainerRestartPolicy(pod.Spec.RestartPolicy)}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range containers {
			if c.Name != name {
				continue
			}
			if c.RestartPolicy != nil {
				of.policy = *c.RestartPolicy
			}
			of.rules = c.RestartPolicyRules
		}
	}
	return of
}

// always reports whether every exit is followed by a restart. An unset policy is Always, the API's default.
func (p restartPolicy) always() bool {
	return p.policy == corev1.ContainerRestartPolicyAlways || p.policy == ""
}

// after reports whether kubelet restarts the container after an exit with this code.
func (p restartPolicy) after(exitCode int32) bool {
	for _, rule := range p.rules {
		if rule.ExitCodes == nil {
			continue
		}
		in := slices.Contains(rule.ExitCodes.Values, exitCode)
		if in == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	switch p.policy {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// final reports whether kubelet has told of an end that it will not take back: where the policy leaves a container ended,
// kubelet refuses any other state of it from then on (kubelet, status manager, checkContainerStateTransition).
func (p restartPolicy) final(status *corev1.ContainerStatus) bool {
	return status != nil && status.State.Terminated != nil && !p.after(status.State.Terminated.ExitCode)
}

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

// backoffBites reports whether kubelet would hold back the start after the end of this instance: it was itself
// a restart, and it has not been up long enough for kubelet to forget that.
func backoffBites(instance Instance, end time.Time) bool {
	return instance.RestartCount > 0 && end.Sub(instance.StartedAt) < BackoffMemory
}

// backoffUntil reads from kubelet's status when it will start the container. It is zero when kubelet is not
// backing off or does not say.
func backoffUntil(status *corev1.ContainerStatus) time.Time {
	if status == nil || status.State.Waiting == nil || status.State.Waiting.Reason != reasonCrashLoopBackOff {
		return time.Time{}
	}
	ended := status.LastTerminationState.Terminated
	// "back-off 40s restarting failed container=app pod=…": kubelet's only word on it.
	text, _, _ := strings.Cut(strings.TrimPrefix(status.State.Waiting.Message, "back-off "), " ")
	delay, err := time.ParseDuration(text)
	if err != nil || ended == nil || ended.FinishedAt.IsZero() {
		return time.Time{}
	}
	return ended.FinishedAt.Add(delay)
}

// waitingFor says what kubelet is waiting for before it starts the container, in words that do not change
// while it waits.
func waitingFor(status *corev1.ContainerStatus) string {
	const text = "waiting for kubelet to start it"
	if until := backoffUntil(status); !until.IsZero() {
		return fmt.Sprintf("%s: kubelet back-off until %s", text, until.UTC().Format(time.RFC3339))
	}
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		return text + ": " + status.State.Waiting.Reason
	}
	return text
}
