package podprobe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Bound copies what is read of a pod that is too large to find out whether it is probed, and that Refit has applied fields to it, see
// [trim.Part]. The decisions about such a pod read it from the API server: its own results may be what makes it too large.
func Bound(bound, kept *corev1.Pod) {
	bound.Status.PodIP = kept.Status.PodIP
	trim.Transition(bound, kept, corev1.PodInitialized)
	if len(kept.ManagedFields) > 0 {
		bound.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
		}}
	}
}

// Complete reports whether the cached pod has everything that decisions about its probes read. If it has not, and Concerns is true,
// the pod is read from the API server.
func Complete(kept *corev1.Pod) bool { return !trim.TooLarge(kept) }

// Concerns reports whether one of the markers selects a cached pod, or Refit has applied fields to it.
func Concerns(markers []Marker, kept *corev1.Pod) bool {
	return len(kept.ManagedFields) > 0 || slices.ContainsFunc(markers, func(m Marker) bool { return m.Selects(kept) })
}
