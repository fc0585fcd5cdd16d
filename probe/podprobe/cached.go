package podprobe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/internal/result"
)

// Keep copies from a pod what decisions about its probes read, see [trim.Part]. Of the managed fields it keeps the ones that
// Refit has applied, and the values of these annotations, also long ones.
func Keep(kept, pod *corev1.Pod) {
	kept.Status.PodIP = pod.Status.PodIP
	for _, entry := range pod.ManagedFields {
		if managedfields.OwnEntry(entry) {
			entry.Time = nil
			kept.ManagedFields = append(kept.ManagedFields, entry)
		}
	}
	for key := range managedfields.OwnedBy(kept).Annotations {
		trim.Annotations(kept, pod, key)
	}
	trim.Conditions(kept, pod, func(kind corev1.PodConditionType) bool { return !result.NativeCondition(kind) })
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodInitialized {
			kept.Status.Conditions[i].Type, kept.Status.Conditions[i].Status = c.Type, c.Status
		}
	}
	trim.EachContainer(kept, pod, func(kept, c *corev1.Container) {
		kept.RestartPolicy = c.RestartPolicy // of an init container: whether it can be probed
		kept.Ports = namedPorts(c.Ports)
	})
}

func namedPorts(all []corev1.ContainerPort) (named []corev1.ContainerPort) {
	for _, port := range all {
		if port.Name != "" {
			named = append(named, corev1.ContainerPort{Name: port.Name, ContainerPort: port.ContainerPort})
		}
	}
	return named
}

// Bound copies what decisions read of a pod that is too large, see [trim.Part].
func Bound(bound, kept *corev1.Pod) {
	bound.Status.PodIP = kept.Status.PodIP
	trim.Transition(bound, kept, corev1.PodInitialized)
}
