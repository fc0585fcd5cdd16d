package gate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/gate"
)

// The drain is counted from the time of the condition: the time of the write, unless another writer has made the pod
// not ready before.
func TestDrainBeginsWhenThePodIsTakenOut(t *testing.T) {
	t.Parallel()
	hourAgo := metav1.NewTime(time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC))
	other := v1beta1.ReadinessHold{UserAgent: "ContainerRecreateRequest", Key: "shop/again"}
	for name, tt := range map[string]struct {
		status corev1.ConditionStatus
		holds  []v1beta1.ReadinessHold
		since  metav1.Time
	}{
		"ready for an hour":                   {status: corev1.ConditionTrue},
		"taken out by another an hour ago":    {corev1.ConditionFalse, []v1beta1.ReadinessHold{other}, hourAgo},
		"the condition is not there so far":   {},
		"taken out by updates, and not later": {status: corev1.ConditionFalse, holds: []v1beta1.ReadinessHold{other, v1beta1.HoldOfInPlaceUpdate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
			if tt.status != "" {
				pod.Status.Conditions = []corev1.PodCondition{{
					Type: v1beta1.ReadinessGateKruisePodReady, Status: tt.status, LastTransitionTime: hourAgo, Message: v1beta1.WriteReadinessHolds(tt.holds),
				}}
			}
			closed, err := gate.Close(pod)
			if err != nil || closed.Status != corev1.ConditionFalse || !closed.LastTransitionTime.Equal(&tt.since) {
				t.Errorf("%v, %s since %s, want %s", err, closed.Status, closed.LastTransitionTime, tt.since)
			}
		})
	}
}

// Its containers are still ready, and kubelet is about to stop one for what the command has written.
func TestAPodIsPutBackOnlyWhenKubeletHasSeenItsChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
	}
	pod.Generation = 2
	for observed, back := range map[int64]bool{0: true, 1: false, 2: true} { // before Kubernetes 1.33 kubelet does not say
		pod.Status.ObservedGeneration = observed
		status, again := gate.TakeBack(pod, now)
		if (status != nil) != back || again.IsZero() != back {
			t.Errorf("generation %d seen: put back %t, again at %s", observed, status != nil, again)
		}
	}
}
