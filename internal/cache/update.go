package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// maxRecord bounds the record of an update in place in the cache, in bytes. A record with ten containers has about 3 KiB.
const maxRecord = 16 << 10

// keepUpdate adds to a trimmed pod that has been updated in place what shows whether the update has ended: the record, the
// report of the node's daemon, the containers with their statuses, the conditions of a resize, and the annotations to which
// environments refer.
func keepUpdate(trimmed, pod *corev1.Pod) {
	if key := recordKey(pod); key == "" || pod.Annotations[key] == "" || len(pod.Annotations[key]) > maxRecord {
		return
	}
	for _, key := range []string{
		v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.AnnotationRuntimeContainersMeta,
		v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateGrace,
	} {
		if value, ok := pod.Annotations[key]; ok && len(value) <= maxRecord {
			trimmed.Annotations[key] = value
		}
	}
	all := func(*corev1.Container) bool { return true }
	keepContainers(trimmed.Spec.Containers, pod.Spec.Containers, all)
	keepContainers(trimmed.Spec.InitContainers, pod.Spec.InitContainers, all)
	keepReferences(trimmed, pod.Spec.Containers, pod.Annotations)
	keepReferences(trimmed, pod.Spec.InitContainers, pod.Annotations)
	keepResize(trimmed, pod)
	keepStatuses(trimmed, pod)
}

// recordKey returns the annotation with the record of the last update of a pod, or "". Package record reads the first of them too.
func recordKey(pod *corev1.Pod) string {
	for _, key := range []string{v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState} {
		if _, ok := pod.Annotations[key]; ok {
			return key
		}
	}
	return ""
}

// keepResize adds the conditions in which kubelet reports a resize. Nothing else shows that one has ended.
func keepResize(trimmed, pod *corev1.Pod) {
	if len(pod.Spec.ReadinessGates) > 0 {
		return // the pod has all conditions
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, c)
		}
	}
}

// keepReferences adds the values of annotations to which the environment of containers refers, also long ones: without them
// an instance with the present environment would look like one with another.
func keepReferences(trimmed *corev1.Pod, containers []corev1.Container, annotations map[string]string) {
	for i := range containers {
		for _, env := range containers[i].Env {
			if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil {
				continue
			}
			key, _ := strings.CutPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.annotations['")
			key, _ = strings.CutSuffix(key, "']")
			if value, ok := annotations[key]; ok {
				trimmed.Annotations[key] = value
			}
		}
	}
}

// Comparable reports whether the cached part of a pod is enough to see whether an update in place has given it its image,
// resources, labels and annotations, apart from annotations for which [KeepsValue] is false. It is not if the pod is too large.
func Comparable(pod *corev1.Pod) bool {
	key := recordKey(pod)
	return len(pod.Spec.Containers) > 0 && (key == "" || pod.Annotations[key] != "")
}

// KeepsValue reports whether the cache keeps an annotation with this value, whoever has written it.
func KeepsValue(value string) bool { return len(value) <= maxCachedValue }
