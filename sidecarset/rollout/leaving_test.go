package rollout_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// The owner of a pod chooses its grace period, and the pods of others wait for its end.
func TestAGracePeriodOfAYearHoldsUpOthersForMinutes(t *testing.T) {
	t.Parallel()
	evicted := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	for seconds, want := range map[int64]time.Duration{30: 30 * time.Second, 31536000: 10 * time.Minute} {
		pod := &corev1.Pod{}
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "w", Controller: new(true)}}
		pod.DeletionTimestamp = new(metav1.NewTime(evicted.Add(time.Duration(seconds) * time.Second)))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(evicted)}}
		for _, injected := range []bool{true, false} {
			if leaving := rollout.LeavingOf(pod, injected); leaving == nil || leaving.Gone.Sub(evicted) != want || leaving.Injected != injected || leaving.Counted {
				t.Errorf("grace period of %d s: %+v", seconds, leaving)
			}
		}
	}
}

func TestADeletedPodIsWaitedForNoLongerThanAnEvictedOne(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		grace int64
		phase corev1.PodPhase
		owner bool
		want  time.Duration // after the deletion; negative for none
	}{
		"its grace period":     {30, corev1.PodRunning, true, 30*time.Second + 5*time.Minute},
		"a year":               {31536000, corev1.PodRunning, true, rollout.LongestEnd + 5*time.Minute},
		"more than a Duration": {10_000_000_000, corev1.PodRunning, true, rollout.LongestEnd + 5*time.Minute},
		"one that has ended":   {30, corev1.PodSucceeded, true, 0},
		"one that has failed":  {30, corev1.PodFailed, true, 0},
		"of nobody":            {30, corev1.PodRunning, false, -1},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: tt.phase}}
		pod.UID, pod.DeletionGracePeriodSeconds = "old", &tt.grace
		pod.DeletionTimestamp = new(metav1.NewTime(time.Unix(began.Unix()+tt.grace, 0)))
		if tt.owner {
			pod.OwnerReferences = []metav1.OwnerReference{{UID: "db", Controller: new(true)}}
		}
		ending := rollout.EndingOf(pod)
		switch {
		case tt.want < 0:
			if ending != nil {
				t.Errorf("%s: %+v", name, ending)
			}
		case ending == nil || ending.Workload != "db" || ending.UID != "old":
			t.Errorf("%s: %+v", name, ending)
		case tt.want == 0 && !ending.Until.IsZero() || tt.want > 0 && ending.Until.Sub(began) != tt.want:
			t.Errorf("%s: until %s", name, ending.Until)
		}
	}
	if rollout.EndingOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "db", Controller: new(true)}}}}) != nil {
		t.Error("a pod that is not being deleted")
	}
}
