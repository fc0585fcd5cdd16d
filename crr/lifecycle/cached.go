package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
)

// Keep copies from a pod what Next and BeginReadiness read, see [trim.Part].
func Keep(kept, pod *corev1.Pod) {
	trim.ReadinessGates(kept, pod)
	trim.States(kept, pod)
	trim.Conditions(kept, pod, func(kind corev1.PodConditionType) bool { return kind == v1beta1.ConditionSidecarTerminated })
}

// Bound copies the readiness gates of a pod that is too large, with their conditions, see [trim.Part]. Without them a pod would not be drained,
// or stay not ready for ever.
func Bound(bound, kept *corev1.Pod) {
	types := map[corev1.PodConditionType]bool{}
	for _, gate := range kept.Spec.ReadinessGates {
		types[gate.ConditionType] = true
	}
	conditions := slices.DeleteFunc(slices.Clone(kept.Status.Conditions), func(c corev1.PodCondition) bool { return !types[c.Type] })
	gated := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: kept.Spec.ReadinessGates}, Status: corev1.PodStatus{Conditions: conditions}}
	if trim.Size(gated) > trim.MaxText {
		return
	}
	bound.Spec.ReadinessGates = kept.Spec.ReadinessGates
	trim.Conditions(bound, kept, func(kind corev1.PodConditionType) bool { return types[kind] })
}
