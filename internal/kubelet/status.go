package kubelet

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// StatusOf returns kubelet's status of a container or init container; nil if there is none. It points into the pod.
func StatusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	return cmp.Or(StatusIn(pod.Status.ContainerStatuses, container), StatusIn(pod.Status.InitContainerStatuses, container))
}

// StatusIn returns the status of a container in a list; nil if there is none.
func StatusIn(statuses []corev1.ContainerStatus, container string) *corev1.ContainerStatus {
	return find(statuses, func(s *corev1.ContainerStatus) bool { return s.Name == container })
}

// Container returns the container or init container with this name; nil if there is none. It points into the spec.
func Container(spec *corev1.PodSpec, name string) *corev1.Container {
	return cmp.Or(ContainerIn(spec.Containers, name), ContainerIn(spec.InitContainers, name))
}

// ContainerIn returns the container of a list with this name; nil if there is none.
func ContainerIn(containers []corev1.Container, name string) *corev1.Container {
	return find(containers, func(c *corev1.Container) bool { return c.Name == name })
}

// Condition returns the condition with that type; nil if the pod has none. It points into the status.
func Condition(status *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	return ConditionIn(status.Conditions, kind)
}

// ConditionIn returns the condition of a list with that type; nil if there is none.
func ConditionIn(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	return find(conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// ConditionTrue reports whether a condition of the pod is True.
func ConditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := Condition(&pod.Status, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Ready reports whether the pod's condition Ready is True.
func Ready(pod *corev1.Pod) bool { return ConditionTrue(pod, corev1.PodReady) }

// Unobserved reports whether kubelet has not observed the present spec of the pod. Kubelets before Kubernetes 1.34 do not report
// what they have observed; it returns false then.
func Unobserved(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation
}

// LogIsGone reports whether text that was read as the log of an instance is kubelet's message for a missing log: the
// runtime has removed the instance. The API server answers 200 then. Source: GetContainerLogs in kubelet's
// kuberuntime_container.go.
func LogIsGone(text string) bool {
	const message = "unable to retrieve container logs for "
	id, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), message)
	return ok && !strings.ContainsAny(id, " \n")
}

// InstanceIsGone reports whether the end of a followed log is kubelet's message for an instance that the runtime has removed
// meanwhile. Source: isContainerRunning in kubelet's logs.go, which asks the runtime.
func InstanceIsGone(text string) bool { return strings.HasPrefix(text, "rpc error: code = NotFound ") }
