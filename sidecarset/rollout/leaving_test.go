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
		if leaving := rollout.LeavingOf(pod, true); leaving == nil || leaving.Gone.Sub(evicted) != want {
			t.Errorf("grace period of %d s: %+v", seconds, leaving)
		}
	}
}
