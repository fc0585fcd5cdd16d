package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/kubelet"
)

// readinessHold is one reason for a pod not to be ready. Condition KruisePodReady keeps a JSON list of them, sorted,
// in its message; every writer adds and removes its own, and the condition is True when none is left.
type readinessHold struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

func readinessKey(request *v1beta1.ContainerRecreateRequest) readinessHold {
	return readinessHold{UserAgent: "ContainerRecreateRequest", Key: request.Namespace + "/" + request.Name}
}

// takeReadiness returns the status of the pod with the hold added, and condition Ready False at once rather than when
// kubelet gets to it. The error is a list that other writers have left unreadable.
func takeReadiness(pod *corev1.Pod, hold readinessHold, now time.Time) (*corev1.PodStatus, bool, error) {
	status := pod.Status.DeepCopy()
	gate := kubelet.Condition(status, v1beta1.ReadinessGateKruisePodReady)
	holds, err := readHolds(gate)
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
	gate.Message = writeHolds(holds)
	setPodCondition(gate, corev1.ConditionFalse, now)
	if ready := kubelet.Condition(status, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionFalse {
		setPodCondition(ready, corev1.ConditionFalse, now)
		ready.Reason = kubelet.ReasonReadinessGatesNotReady
		// Not kubelet's message, with which kubelet would write Ready True again, within 10 s.
		ready.Message = kubelet.DrainMessage(v1beta1.ReadinessGateKruisePodReady)
	}
	return status, true, nil
}

// giveBackReadiness returns the status of the pod with the hold removed; kubelet sets condition Ready by itself.
func giveBackReadiness(pod *corev1.Pod, hold readinessHold, now time.Time) (*corev1.PodStatus, bool) {
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil, false
	}
	status := pod.Status.DeepCopy()
	gate := kubelet.Condition(status, v1beta1.ReadinessGateKruisePodReady)
	holds, err := readHolds(gate)
	if err != nil || !slices.Contains(holds, hold) {
		return nil, false
	}
	holds = slices.DeleteFunc(holds, func(h readinessHold) bool { return h == hold })
	gate.Message = writeHolds(holds)
	if len(holds) == 0 {
		setPodCondition(gate, corev1.ConditionTrue, now)
	}
	return status, true
}

func readHolds(gate *corev1.PodCondition) ([]readinessHold, error) {
	if gate == nil || gate.Message == "" {
		return nil, nil
	}
	var holds []readinessHold
	if err := json.Unmarshal([]byte(gate.Message), &holds); err != nil {
		return nil, fmt.Errorf("read the message of pod condition %s: %w", gate.Type, err)
	}
	return holds, nil
}

func writeHolds(holds []readinessHold) string {
	slices.SortFunc(holds, func(a, b readinessHold) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	text, err := json.Marshal(holds)
	if err != nil { // strings always marshal
		return "[]"
	}
	return string(text)
}

func setPodCondition(condition *corev1.PodCondition, value corev1.ConditionStatus, now time.Time) {
	if condition.Status != value {
		condition.Status = value
		condition.LastTransitionTime = metav1.NewTime(now)
	}
}

// BeginReadiness returns the status of a pod whose readiness gate has no condition yet, with the gate open: until
// then kubelet keeps the pod not ready, whether or not a request ever comes.
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
