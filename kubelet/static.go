package kubelet

import corev1 "k8s.io/api/core/v1"

// AnnotationConfigHash holds, on a mirror pod, the UID of the static pod that it mirrors (kubelet,
// kubetypes.ConfigHashAnnotationKey). The annotation that makes a pod a mirror pod is corev1.MirrorPodAnnotationKey.
const AnnotationConfigHash = "kubernetes.io/config.hash"

// IsMirrorPod reports whether the pod only shows a static pod of its node in the API.
func IsMirrorPod(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// RuntimePodUID is the UID under which the container runtime knows the pod, as in [LabelPodUID]. That of a static pod
// is made from its file and differs from the UID of the mirror pod. Whoever may create pods may write both
// annotations: compare namespace and name of what is found under the UID before acting on it.
func RuntimePodUID(pod *corev1.Pod) string {
	if hash := pod.Annotations[AnnotationConfigHash]; IsMirrorPod(pod) && hash != "" {
		return hash
	}
	return string(pod.UID)
}
