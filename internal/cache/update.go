package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// maxRecord bounds the record of an update in place in the cache, in bytes. A record with ten containers has about 3 KiB.
const maxRecord = 16 << 10

// keepUpdate adds to a trimmed pod that has been updated in place what shows whether the update has ended: the record, the
// report of the node's daemon, the containers with their statuses, and the annotations to which environments refer.
func keepUpdate(trimmed, pod *corev1.Pod) {
	record := pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]
	if record == "" || len(record) > maxRecord {
		return
	}
	trimmed.Annotations[v1beta1.AnnotationInPlaceUpdateState] = record
	for _, key := range []string{v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.AnnotationRuntimeContainersMeta} {
		if value, ok := pod.Annotations[key]; ok && len(value) <= maxRecord {
			trimmed.Annotations[key] = value
		}
	}
	all := func(*corev1.Container) bool { return true }
	keepContainers(trimmed.Spec.Containers, pod.Spec.Containers, all)
	keepContainers(trimmed.Spec.InitContainers, pod.Spec.InitContainers, all)
	keepReferences(trimmed, pod.Spec.Containers, pod.Annotations)
	keepReferences(trimmed, pod.Spec.InitContainers, pod.Annotations)
	keepStatuses(trimmed, pod)
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
	record, recorded := pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]
	return len(pod.Spec.Containers) > 0 && (record != "" || !recorded)
}

// KeepsValue reports whether the cache keeps an annotation with this value, whoever has written it.
func KeepsValue(value string) bool { return len(value) <= maxCachedValue }
