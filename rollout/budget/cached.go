package budget

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/internal/cache/trim"
)

// Keep copies from a pod what Observe reads, see [trim.Part].
func Keep(kept, pod *corev1.Pod) {
	kept.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	trim.RestartPolicies(kept, pod)
	trim.States(kept, pod)
	inplace.KeepProgress(kept, pod)
}

// Bound copies what Observe reads of a pod that is too large, see [trim.Part].
func Bound(bound, kept *corev1.Pod) {
	bound.Spec.RestartPolicy, bound.Spec.TerminationGracePeriodSeconds = kept.Spec.RestartPolicy, kept.Spec.TerminationGracePeriodSeconds
}
