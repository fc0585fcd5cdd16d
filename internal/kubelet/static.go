package kubelet

import corev1 "k8s.io/api/core/v1"

// AnnotationConfigHash is, on a mirror pod, the UID of the static pod that it mirrors (kubelet,
// kubetypes.ConfigHashAnnotationKey). The annotation that marks a mirror pod is corev1.MirrorPodAnnotationKey.
const AnnotationConfigHash = "kubernetes.io/config.hash"

// IsMirrorPod reports whether the pod represents a static pod of its node in the API.
func IsMirrorPod(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// RuntimePodUID returns the UID of the pod in the container runtime, as in [LabelPodUID]. The UID of a static pod is
// derived from its file and differs from the UID of the mirror pod. Anyone who may create pods may write both annotations:
// compare namespace and name of a pod found by this UID before changing it.
func RuntimePodUID(pod *corev1.Pod) string {
	if hash := pod.Annotations[AnnotationConfigHash]; IsMirrorPod(pod) && hash != "" {
		return hash
	}
	return string(pod.UID)
}
