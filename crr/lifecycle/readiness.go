package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

func readinessKey(request *v1beta1.ContainerRecreateRequest) v1beta1.ReadinessHold {
	return v1beta1.ReadinessHold{UserAgent: "ContainerRecreateRequest", Key: request.Namespace + "/" + request.Name}
}

// takeReadiness returns the pod status with the hold added, and with condition Ready set to False at once instead of
// waiting for kubelet. It returns an error if another writer has left the list of holds unreadable.
func takeReadiness(pod *corev1.Pod, hold v1beta1.ReadinessHold, now time.Time) (*corev1.PodStatus, bool, error) {
	status := pod.Status.DeepCopy()
	gate := kubelet.Condition(status, v1beta1.ReadinessGateKruisePodReady)
	holds, err := v1beta1.ReadReadinessHolds(gate)
	if err != nil {
		return nil, false, err
	}
	if slices.Contains(holds, hold) && gate.Status == corev1.ConditionFalse {
		return nil, false, nil
	}
	if !slices.Contains(holds, hold) {
		holds = append(holds, hold)
	}
	if gate == nil {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: v1beta1.ReadinessGateKruisePodReady})
		gate = &status.Conditions[len(status.Conditions)-1]
	}
	gate.Message = v1beta1.WriteReadinessHolds(holds)
	setPodCondition(gate, corev1.ConditionFalse, now)
	if ready := kubelet.Condition(status, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionFalse {
		setPodCondition(ready, corev1.ConditionFalse, now)
		ready.Reason = kubelet.ReasonReadinessGatesNotReady
		// Do not use kubelet's message: with it kubelet would set Ready back to True within 10 s.
		ready.Message = kubelet.DrainMessage(v1beta1.ReadinessGateKruisePodReady)
	}
	return status, true, nil
}

// giveBackReadiness returns the pod status with the hold removed. Kubelet sets condition Ready itself.
func giveBackReadiness(pod *corev1.Pod, hold v1beta1.ReadinessHold, now time.Time) (*corev1.PodStatus, bool) {
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil, false
	}
	status := pod.Status.DeepCopy()
	gate := kubelet.Condition(status, v1beta1.ReadinessGateKruisePodReady)
	holds, err := v1beta1.ReadReadinessHolds(gate)
	if err != nil || !slices.Contains(holds, hold) {
		return nil, false
	}
	holds = slices.DeleteFunc(holds, func(h v1beta1.ReadinessHold) bool { return h == hold })
	gate.Message = v1beta1.WriteReadinessHolds(holds)
	if len(holds) == 0 {
		setPodCondition(gate, corev1.ConditionTrue, now)
	}
	return status, true
}

func setPodCondition(condition *corev1.PodCondition, value corev1.ConditionStatus, now time.Time) {
	if condition.Status != value {
		condition.Status = value
		condition.LastTransitionTime = metav1.NewTime(now)
	}
}

// BeginReadiness returns the pod status with the initial condition of the readiness gate, set to True, if it has none
// yet. Without the condition kubelet keeps the pod not ready, even if no request ever comes.
func BeginReadiness(pod *corev1.Pod, now time.Time) (*corev1.PodStatus, bool) {
	if pod.DeletionTimestamp != nil || !podrules.HasReadinessGate(pod) || kubelet.Condition(&pod.Status, v1beta1.ReadinessGateKruisePodReady) != nil {
		return nil, false
	}
	status := pod.Status.DeepCopy()
	status.Conditions = append(status.Conditions, corev1.PodCondition{
		Type: v1beta1.ReadinessGateKruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
	})
	return status, true
}
