package control

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// The owner of a pod chooses its grace period. Without the seconds the end of the grace period counted as its beginning, so the pods
// of others waited for a year.
func TestADeletedPodInTheCacheIsWaitedForAsLongAsThePod(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for seconds, label := range map[int64]string{30: "", 31536000: "", 31536001: strings.Repeat("too large for the cache", 4000)} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: "old", Labels: map[string]string{"l": label}, OwnerReferences: []metav1.OwnerReference{{UID: "db", Controller: new(true)}},
			DeletionTimestamp: new(metav1.NewTime(began.Add(time.Duration(seconds) * time.Second))), DeletionGracePeriodSeconds: &seconds,
		}}
		if want, got := rollout.EndingOf(pod), rollout.EndingOf(trimmer.Of(pod)); got == nil || !got.Until.Equal(want.Until) {
			t.Errorf("grace period of %d s: until %+v, with the pod until %s", seconds, got, want.Until)
		}
	}
}

// Such a pod would count as one that is missing a sidecar, and could be evicted for it.
func TestAPodWithoutSidecarsInTheCacheHasDoneItsWork(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
	if upgrade.Active(trimmer.Of(pod)) {
		t.Error("it counts as a pod that works")
	}
}

// Pods without sidecars count too: for the budgets of their workloads, and because they may be evicted.
func TestAPodWithoutSidecarsInTheCacheIsForBudgetsWhatItIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, state := range map[string]corev1.ContainerState{
		"runs":                             {Running: &corev1.ContainerStateRunning{}},
		"waits for its next start":         {Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		"has failed, and is not restarted": {Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now)}}
		pod.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app"}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: state}}
		want, _ := budget.Observe(pod, nil, 0, now)
		if got, _ := budget.Observe(trimmer.Of(pod), nil, 0, now); got.Stuck != want.Stuck || want.Stuck == (state.Running != nil) {
			t.Errorf("%s: stuck %t, in the cache %t", name, want.Stuck, got.Stuck)
		}
	}
}
