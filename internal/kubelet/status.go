package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// StatusOf returns kubelet's status of a container or init container; nil if there is none. It points into the pod.
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

// Condition returns the condition with that type; nil if the pod has none. It points into the status.
func Condition(status *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// Ready reports whether the pod's condition Ready is True.
func Ready(pod *corev1.Pod) bool {
	c := Condition(&pod.Status, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// LogIsGone reports whether text that was read as the log of an instance is kubelet's message for a missing log: the
// runtime has removed the instance. The API server answers 200 then. Source: GetContainerLogs in kubelet's
// kuberuntime_container.go.
func LogIsGone(text string) bool {
	const message = "unable to retrieve container logs for "
	id, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), message)
	return ok && !strings.ContainsAny(id, " \n")
}
