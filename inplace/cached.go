package inplace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/cache/trim"
)

// maxRecord bounds the record of an update in place in a cache, in bytes. A record with ten containers has about 3 KiB.
const maxRecord = 16 << 10

// KeepProgress copies from a pod what Next reads if an update of the pod or of its sidecars is recorded, see [trim.Part].
func KeepProgress(kept, pod *corev1.Pod) {
	if key := record.Annotation(pod); key != "" && pod.Annotations[key] != "" && len(pod.Annotations[key]) <= maxRecord {
		keepOwnUpdate(kept, pod)
	}
	if _, updated := pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; updated && pod.Annotations[v1beta1.AnnotationSidecarSetList] != "" {
		keepSidecarUpdates(kept, pod)
	}
}

func keepOwnUpdate(kept, pod *corev1.Pod) {
	for _, key := range []string{
		v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.AnnotationRuntimeContainersMeta,
		v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateGrace,
	} {
		if len(pod.Annotations[key]) <= maxRecord {
			trim.Annotations(kept, pod, key)
		}
	}
	trim.EachContainer(kept, pod, trim.UpdatedFields)
	trim.EachContainer(kept, pod, func(_, c *corev1.Container) { keepReferences(kept, pod, c) })
	keepState(kept, pod)
}

func keepSidecarUpdates(kept, pod *corev1.Pod) {
	trim.Annotations(kept, pod, v1beta1.AnnotationSidecarSetInPlaceUpdateState, v1beta1.AnnotationRuntimeContainersMeta)
	trim.EachContainer(kept, pod, func(kept, c *corev1.Container) {
		if v1beta1.IsInjected(c) {
			trim.UpdatedFields(kept, c)
		}
	})
	keepState(kept, pod)
}

// keepState keeps what updates of all kinds depend on.
func keepState(kept, pod *corev1.Pod) {
	kept.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	trim.RestartPolicies(kept, pod)
	trim.ReadinessGates(kept, pod)
	trim.Conditions(kept, pod, func(kind corev1.PodConditionType) bool { // nothing else shows that a resize has ended
		return kind == corev1.PodResizePending || kind == corev1.PodResizeInProgress
	})
	trim.Statuses(kept, pod)
}

// keepReferences keeps the values of annotations to which the environment of a container refers, also long ones: without them
// an instance with the present environment would look like one with another.
func keepReferences(kept, pod *corev1.Pod, c *corev1.Container) {
	for _, env := range c.Env {
		if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil {
			continue
		}
		key, _ := strings.CutPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.annotations['")
		key, _ = strings.CutSuffix(key, "']")
		trim.Annotations(kept, pod, key)
	}
}
