package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// annotationSidecarSetHash is on pods into which OpenKruise has injected containers of a SidecarSet.
const annotationSidecarSetHash = "kruise.io/sidecarset-hash"

// UpdatedInPlace reports whether a pod is updated in place: it or a part of it belongs to a workload of OpenKruise or a
// SidecarSet, it has the readiness gate of such updates, or it has been updated in place before.
func UpdatedInPlace(pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return strings.HasPrefix(o.APIVersion, v1beta1.Group+"/") }) ||
		slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
			return g.ConditionType == v1beta1.ReadinessGateInPlaceUpdateReady
		}) {
		return true
	}
	for _, key := range []string{annotationSidecarSetHash, v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationRuntimeContainersMeta} {
		if _, ok := pod.Annotations[key]; ok {
			return true
		}
	}
	return false
}

// keepForInPlaceUpdate keeps what shows whether a container is up to date: its image, the environment variables from labels
// and annotations with their sources, launch priorities, and the previous report.
func keepForInPlaceUpdate(pod, trimmed *corev1.Pod) {
	// Empty if there is none yet: UpdatedInPlace recognizes the trimmed pod by it.
	metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, v1beta1.AnnotationRuntimeContainersMeta, pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta])
	for i := range pod.Spec.Containers {
		from, to := &pod.Spec.Containers[i], &trimmed.Spec.Containers[i]
		to.Image = from.Image
		for _, env := range from.Env {
			switch source := env.ValueFrom; {
			case source == nil:
			case source.FieldRef != nil && strings.HasPrefix(source.FieldRef.FieldPath, "metadata."):
				to.Env = append(to.Env, env)
				keepField(pod, trimmed, source.FieldRef.FieldPath)
			case env.Name == v1beta1.EnvContainerBarrier:
				to.Env = append(to.Env, env)
			}
		}
	}
}

func keepField(pod, trimmed *corev1.Pod, path string) {
	path, _ = strings.CutSuffix(path, "']")
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		if value, ok := pod.Labels[key]; ok {
			metav1.SetMetaDataLabel(&trimmed.ObjectMeta, key, value)
		}
	} else if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		if value, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, key, value)
		}
	}
}
