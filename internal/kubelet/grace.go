package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// MinGracePeriod is the time that kubelet leaves between the stop signal and SIGKILL after a preStop hook that used the
// whole grace period (kubelet, minimumGracePeriodInSeconds).
const MinGracePeriod = 2 * time.Second

// MaxGracePeriod is the longest accepted grace period: the API server accepts any number of seconds, but a time.Duration
// holds at most 292 years.
const MaxGracePeriod = 30 * 24 * time.Hour

// GracePeriod returns the time between TERM and KILL for a number of seconds, at most MaxGracePeriod; nil is the API's
// default.
func GracePeriod(seconds *int64) time.Duration {
	if seconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(min(max(*seconds, 0), int64(MaxGracePeriod/time.Second))) * time.Second
}
