package kubelet

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// CrashBackoffReset is how long an instance has to be up until kubelet forgets the restarts before it: twice the longest
// delay, MaxContainerBackOff of 300 s (client-go, flowcontrol.Backoff). Until then each restart is delayed for
// longer: 10 s, 20 s, 40 s ... 300 s after the exit.
const CrashBackoffReset = 10 * time.Minute

// ReasonCrashLoopBackOff is the ContainerStateWaiting.Reason of a container whose restart kubelet delays.
const ReasonCrashLoopBackOff = "CrashLoopBackOff"

// DelaysRestart reports whether kubelet delays the restart after the end of an instance: the instance was itself a
// restart, and was not up for long enough to reset the back-off. restartCount is the instance's, 0 for the first.
func DelaysRestart(restartCount int32, up time.Duration) bool {
	return restartCount > 0 && up < CrashBackoffReset
}

// BackoffUntil reads from a container's status when kubelet will restart it. It is zero when kubelet does not delay
// the restart or does not say until when. The time is of the node's clock.
func BackoffUntil(status *corev1.ContainerStatus) time.Time {
	if status == nil || status.State.Waiting == nil || status.State.Waiting.Reason != ReasonCrashLoopBackOff {
		return time.Time{}
	}
	ended := status.LastTerminationState.Terminated
	// "back-off 40s restarting failed container=app pod=…": nothing else in the status gives the delay.
	text, isDelay := strings.CutPrefix(status.State.Waiting.Message, "back-off ")
	text, _, _ = strings.Cut(text, " ")
	delay, err := time.ParseDuration(text)
	if !isDelay || err != nil || delay < 0 || ended == nil || ended.FinishedAt.IsZero() {
		return time.Time{}
	}
	return ended.FinishedAt.Add(delay)
}
