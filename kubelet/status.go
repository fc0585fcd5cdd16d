package kubelet

import corev1 "k8s.io/api/core/v1"

// StatusOf returns what kubelet reports of a container or init container, nil if it has not reported it. It points into the
// pod.
func StatusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				return &statuses[i]
			}
		}
	}
	return nil
}
