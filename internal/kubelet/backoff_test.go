package kubelet_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

func TestDelaysRestart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		restarts int32
		up       time.Duration
		want     bool
	}{
		"first instance, up briefly":    {0, time.Second, false},
		"a restart, up briefly":         {1, time.Second, true},
		"just under ten minutes":        {5, 10*time.Minute - 1, true},
		"ten minutes: kubelet forgets":  {5, 10 * time.Minute, false},
		"first instance, up for a week": {0, 7 * 24 * time.Hour, false},
	} {
		if got := kubelet.DelaysRestart(tt.restarts, tt.up); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestBackoffUntil(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	status := func(reason, message string, finished metav1.Time) *corev1.ContainerStatus {
		return &corev1.ContainerStatus{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: finished}},
		}
	}
	const message = "back-off 1m20s restarting failed container=app pod=web_shop(0d5dfd4c-6e1b-4be9-a4b5-5f6a4b0f2f3c)"
	for name, tt := range map[string]struct {
		status *corev1.ContainerStatus
		want   time.Time
	}{
		"message of kubelet 1.36":  {status("CrashLoopBackOff", message, ended), ended.Add(80 * time.Second)},
		"no status":                {nil, time.Time{}},
		"not waiting":              {&corev1.ContainerStatus{}, time.Time{}},
		"waits for an image":       {status("ImagePullBackOff", message, ended), time.Time{}},
		"end unknown":              {status("CrashLoopBackOff", message, metav1.Time{}), time.Time{}},
		"no delay in the message":  {status("CrashLoopBackOff", "restarting failed container", ended), time.Time{}},
		"another message":          {status("CrashLoopBackOff", "40s until the next start", ended), time.Time{}},
		"negative delay":           {status("CrashLoopBackOff", "back-off -40s restarting", ended), time.Time{}},
		"empty message":            {status("CrashLoopBackOff", "", ended), time.Time{}},
		"no end in the last state": {&corev1.ContainerStatus{State: status("CrashLoopBackOff", message, ended).State}, time.Time{}},
	} {
		if got := kubelet.BackoffUntil(tt.status); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The message is kubelet's, but a tenant may write the status of a pod on a virtual node.
func FuzzBackoffUntil(f *testing.F) {
	f.Add("back-off 40s restarting failed container=app")
	f.Fuzz(func(t *testing.T, message string) {
		ended := metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
		got := kubelet.BackoffUntil(&corev1.ContainerStatus{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}},
		})
		if !got.IsZero() && got.Before(ended.Time) {
			t.Errorf("%q: %s, before the end", message, got)
		}
	})
}
