package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/rollout/budget"
)

// Keep copies from a pod what Next reads, see [trim.Part].
func Keep(kept, pod *corev1.Pod) {
	budget.Keep(kept, pod)
	trim.ReadinessGates(kept, pod)
	kept.Spec.ImagePullSecrets = pod.Spec.ImagePullSecrets
	trim.EachContainer(kept, pod, func(kept, c *corev1.Container) {
		kept.Image, kept.ImagePullPolicy, kept.Resources = c.Image, c.ImagePullPolicy, c.Resources
	})
}

// Comparable reports whether the cached part of a pod is enough to see whether an update in place has given it its image,
// resources, labels and annotations, apart from annotations for which [KeepsValue] is false. It is not if the pod is too large.
func Comparable(pod *corev1.Pod) bool {
	key := record.Annotation(pod)
	return !trim.TooLarge(pod) && (key == "" || pod.Annotations[key] != "")
}

// KeepsValue reports whether the cache keeps an annotation with this value, whoever has written it.
func KeepsValue(value string) bool { return len(value) <= trim.MaxValue }
