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
