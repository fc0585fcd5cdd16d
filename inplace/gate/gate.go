// Package gate makes a pod not ready for an update in place, and ready again afterwards, by the readiness gates
// KruisePodReady and InPlaceUpdateReady.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

const (
	shared = v1beta1.ReadinessGateKruisePodReady
	own    = v1beta1.ReadinessGateInPlaceUpdateReady
)

// Of returns the readiness gate by which an update makes the pod not ready, or "" if the pod has none: the one that an
// update has closed, or else KruisePodReady, or else InPlaceUpdateReady.
func Of(pod *corev1.Pod) corev1.PodConditionType {
	switch {
	case has(pod, own) && is(pod, own, corev1.ConditionFalse):
		return own // OpenKruise, or an earlier version of Refit that only used this gate, has begun
	case has(pod, shared):
		return shared
	case has(pod, own):
		return own
	default:
		return ""
	}
}

func has(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool { return gate.ConditionType == kind })
}

func is(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	c := kubelet.Condition(&pod.Status, kind)
	return c != nil && c.Status == status
}

// Closed returns the condition by which an update keeps the pod not ready, or nil. It points into the pod.
func Closed(pod *corev1.Pod) *corev1.PodCondition {
	gate := Of(pod)
	condition := kubelet.Condition(&pod.Status, gate)
	if condition == nil || condition.Status != corev1.ConditionFalse {
		return nil
	}
	if gate == shared {
		holds, err := v1beta1.ReadReadinessHolds(condition)
		if err != nil || !slices.Contains(holds, v1beta1.HoldOfInPlaceUpdate) {
			return nil
		}
	}
	return condition
}

// Message describes since when an update has kept a pod not ready, and what to do about it. It is empty for other pods.
func Message(pod *corev1.Pod) string {
	condition := Closed(pod)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("an in-place update keeps the pod out of its Services since %s (readiness gate %s); if its command has ended, "+
		"run the same kubectl refit set again, or refit-manager puts the pod back", condition.LastTransitionTime.UTC().Format(time.RFC3339), condition.Type)
}

// Shut reports whether a gate keeps the pod not ready: an update has closed it, or it has no condition yet.
func Shut(pod *corev1.Pod) bool {
	return Closed(pod) != nil || has(pod, own) && !is(pod, own, corev1.ConditionTrue) ||
		has(pod, shared) && kubelet.Condition(&pod.Status, shared) == nil
}

// Close returns the condition that makes the pod not ready now. Its time is zero if it should be set to the time of the
// write. Close returns an error if another writer has left the condition KruisePodReady unreadable.
func Close(pod *corev1.Pod) (corev1.PodCondition, error) {
	condition := corev1.PodCondition{Type: Of(pod), Status: corev1.ConditionFalse, Reason: v1beta1.ReasonStartInPlaceUpdate}
	if condition.Type != shared {
		return condition, nil
	}
	was := kubelet.Condition(&pod.Status, shared)
	holds, err := v1beta1.ReadReadinessHolds(was)
	if err != nil {
		return condition, err
	}
	if !slices.Contains(holds, v1beta1.HoldOfInPlaceUpdate) {
		holds = append(holds, v1beta1.HoldOfInPlaceUpdate)
		if was != nil && was.Status == corev1.ConditionFalse {
			condition.LastTransitionTime = was.LastTransitionTime // another writer has made it not ready before
		}
	}
	condition.Message = v1beta1.WriteReadinessHolds(holds)
	return condition, nil
}

// Open returns the conditions of the pod's gates without an update. Other writers may still keep KruisePodReady False.
// A time is zero if it should be set to the time of the write.
func Open(pod *corev1.Pod) []corev1.PodCondition {
	var open []corev1.PodCondition
	if has(pod, own) {
		open = append(open, corev1.PodCondition{Type: own, Status: corev1.ConditionTrue})
	}
	if !has(pod, shared) {
		return open
	}
	was := kubelet.Condition(&pod.Status, shared)
	holds, err := v1beta1.ReadReadinessHolds(was)
	if err != nil {
		return open // it cannot contain a hold of ours
	}
	holds = slices.DeleteFunc(holds, func(h v1beta1.ReadinessHold) bool { return h == v1beta1.HoldOfInPlaceUpdate })
	gate := corev1.PodCondition{Type: shared, Status: corev1.ConditionTrue, Message: v1beta1.WriteReadinessHolds(holds)}
	if was != nil && was.Status == corev1.ConditionFalse && len(holds) > 0 {
		gate.Status, gate.LastTransitionTime = corev1.ConditionFalse, was.LastTransitionTime
	}
	return append(open, gate)
}

// leftAfter is how long after its drain a pod may stay not ready, with all its containers ready, until it counts as
// abandoned by its command. A command that still follows the pod writes within seconds.
const leftAfter = time.Minute

// TakeBack returns the status, with open gates, for a pod that an ended command has left not ready. It returns nil for
// other pods; again is then when the pod may become one, or zero if its gates are open. Pods of OpenKruise's workloads
// are left to their controllers.
func TakeBack(pod *corev1.Pod, now time.Time) (status *corev1.PodStatus, again time.Time) {
	condition := Closed(pod)
	if condition == nil || pod.DeletionTimestamp != nil || OfOpenKruise(pod) {
		return nil, time.Time{}
	}
	var drain int32
	if recorded, err := record.Read(pod); err == nil && recorded != nil { // otherwise no command continues it
		drain = recorded.Extension().DrainSeconds
	}
	if until := condition.LastTransitionTime.Add(time.Duration(drain)*time.Second + leftAfter); now.Before(until) {
		return nil, until
	}
	seen := pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation
	if !seen || !is(pod, corev1.ContainersReady, corev1.ConditionTrue) {
		return nil, now.Add(leftAfter)
	}
	return with(pod, now, Open(pod)), time.Time{}
}

// Begin returns the status of a pod whose readiness gate InPlaceUpdateReady has no condition yet, with the gate open.
// Without the condition kubelet keeps the pod not ready. Pods of OpenKruise's workloads are left to their controllers.
func Begin(pod *corev1.Pod, now time.Time) (*corev1.PodStatus, bool) {
	if pod.DeletionTimestamp != nil || OfOpenKruise(pod) || !has(pod, own) || kubelet.Condition(&pod.Status, own) != nil {
		return nil, false
	}
	return with(pod, now, []corev1.PodCondition{{Type: own, Status: corev1.ConditionTrue}}), true
}

func with(pod *corev1.Pod, now time.Time, conditions []corev1.PodCondition) *corev1.PodStatus {
	status := pod.Status.DeepCopy()
	for _, condition := range conditions {
		was := kubelet.Condition(status, condition.Type)
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = metav1.NewTime(now)
			if was != nil && was.Status == condition.Status {
				condition.LastTransitionTime = was.LastTransitionTime
			}
		}
		if was != nil {
			*was = condition
		} else {
			status.Conditions = append(status.Conditions, condition)
		}
	}
	return status
}

// OfOpenKruise reports whether a workload of OpenKruise owns the pod.
func OfOpenKruise(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && strings.HasPrefix(owner.APIVersion, v1beta1.Group+"/")
}
