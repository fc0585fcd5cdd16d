package kubelet

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// CrashBackoffReset is how long an instance has to run until kubelet resets the back-off: twice the longest delay,
// MaxContainerBackOff of 300 s (client-go, flowcontrol.Backoff). Until then each restart is delayed for longer: 10 s, 20 s,
// 40 s ... 300 s after the exit.
const CrashBackoffReset = 10 * time.Minute

// ReasonCrashLoopBackOff is the ContainerStateWaiting.Reason of a container whose restart kubelet delays.
const ReasonCrashLoopBackOff = "CrashLoopBackOff"

// DelaysRestart reports whether kubelet delays the restart after the end of an instance: the instance was a restart itself,
// and did not run long enough to reset the back-off. restartCount is the count of the instance, 0 for the first.
func DelaysRestart(restartCount int32, up time.Duration) bool {
	return restartCount > 0 && up < CrashBackoffReset
}

// BackoffUntil returns, from a container's status, when kubelet will restart it. It is zero if kubelet does not delay the
// restart or the message has no delay. The time is of the node's clock.
func BackoffUntil(status *corev1.ContainerStatus) time.Time {
	if status == nil || status.State.Waiting == nil || status.State.Waiting.Reason != ReasonCrashLoopBackOff {
		return time.Time{}
	}
	ended := status.LastTerminationState.Terminated
	// "back-off 40s restarting failed container=app pod=…": no other field of the status has the delay.
	text, isDelay := strings.CutPrefix(status.State.Waiting.Message, "back-off ")
	text, _, _ = strings.Cut(text, " ")
	delay, err := time.ParseDuration(text)
	if !isDelay || err != nil || delay < 0 || ended == nil || ended.FinishedAt.IsZero() {
		return time.Time{}
	}
	return ended.FinishedAt.Add(delay)
}
