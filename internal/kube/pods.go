package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// Pods is a cache of the pods of one node, each trimmed to what Refit reads of it.
func (c *Client) Pods(node string) (cache.SharedIndexInformer, error) {
	source := cache.NewFilteredListWatchFromClient(c.core, "pods", metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	})
	return newInformer(c.guard, source, &corev1.Pod{}, trimPod)
}

// trimPod keeps the identity, the fields that decide about restarts, and the status: about 2 of 30 KiB.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
	}}
	for _, key := range []string{corev1.MirrorPodAnnotationKey, kubelet.AnnotationConfigHash} {
		if value, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, key, value)
		}
	}
	trimmed.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy, ReadinessGates: pod.Spec.ReadinessGates,
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds, HostNetwork: pod.Spec.HostNetwork,
		Containers: trimContainers(pod.Spec.Containers), InitContainers: trimContainers(pod.Spec.InitContainers),
	}
	if UpdatedInPlace(pod) {
		keepForInPlaceUpdate(pod, trimmed)
	}
	trimmed.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, Conditions: trimConditions(pod.Status.Conditions),
		ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
		InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1beta1.ReadinessGateInPlaceUpdateReady {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, c)
		}
	}
	return trimmed, nil
}

// trimConditions keeps the condition that decides about requests.
func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	for _, condition := range conditions {
		if condition.Type == v1beta1.ConditionSidecarTerminated {
			return []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return nil
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, len(containers))
	for i, c := range containers {
		trimmed[i] = corev1.Container{
			Name: c.Name, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules, Ports: namedPorts(c.Ports),
		}
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			trimmed[i].Lifecycle = &corev1.Lifecycle{PreStop: c.Lifecycle.PreStop}
		}
	}
	return trimmed
}

// namedPorts returns the ports that a probe or a hook can name.
func namedPorts(ports []corev1.ContainerPort) []corev1.ContainerPort {
	var named []corev1.ContainerPort
	for _, p := range ports {
		if p.Name != "" {
			named = append(named, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort})
		}
	}
	return named
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i, s := range statuses {
		trimmed[i] = corev1.ContainerStatus{
			Name: s.Name, ContainerID: s.ContainerID, Ready: s.Ready, RestartCount: s.RestartCount,
			State: s.State, LastTerminationState: s.LastTerminationState,
		}
	}
	return trimmed
}
