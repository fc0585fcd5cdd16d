package control

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr/jobend"
	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/internal/cache/trim"
)

// PodPart returns what ContainerRecreateRequests need of cached pods.
func PodPart() trim.Part {
	keep := func(kept, pod *corev1.Pod) {
		lifecycle.Keep(kept, pod)
		jobend.Keep(kept, pod)
	}
	return trim.Part{Keep: keep, Bound: lifecycle.Bound}
}
