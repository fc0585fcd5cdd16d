package lifecycle

import (
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
	size, gates := 0, map[corev1.PodConditionType]bool{}
	for _, gate := range kept.Spec.ReadinessGates {
		gates[gate.ConditionType] = true
		size += len(gate.ConditionType)
	}
	for _, c := range kept.Status.Conditions {
		if gates[c.Type] {
			size += len(c.Reason) + len(c.Message)
		}
	}
	if size > trim.MaxText {
		return
	}
	bound.Spec.ReadinessGates = kept.Spec.ReadinessGates
	for i, c := range kept.Status.Conditions {
		if gates[c.Type] {
			bound.Status.Conditions[i] = c
		}
	}
}
