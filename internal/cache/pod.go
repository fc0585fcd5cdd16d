package cache

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/internal/result"
)

// maxCachedValue bounds the value of an annotation in the cache, in bytes. Of a longer value only the key is kept, unless
// Refit has written it.
const maxCachedValue = 256

// maxCachedImage bounds the name of an image that can end a sidecar, in bytes. A sidecar with a longer name is not ended.
const maxCachedImage = 512

// TrimPod is the transform of the cache of pods. It keeps the fields that the lifecycle of requests, the probes of pods,
// and the rollouts of restarts and of SidecarSets need. Admission needs more, and reads pods from the API server.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("trim pod: got %T", object)
	}
	return trimPod(pod), nil
}

func trimPod(pod *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels,
			OwnerReferences: trimOwners(pod), Generation: pod.Generation,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, ReadinessGates: pod.Spec.ReadinessGates, RestartPolicy: pod.Spec.RestartPolicy, ImagePullSecrets: pod.Spec.ImagePullSecrets,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds, HostNetwork: pod.Spec.HostNetwork,
			Containers: trimContainers(pod.Spec.Containers), InitContainers: trimContainers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, PodIPs: trimAddresses(pod), ObservedGeneration: pod.Status.ObservedGeneration,
			ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
		},
	}
	for _, entry := range pod.ManagedFields {
		if managedfields.OwnEntry(entry) {
			entry.Time = nil
			trimmed.ManagedFields = append(trimmed.ManagedFields, entry)
		}
	}
	trimmed.Annotations = trimAnnotations(pod.Annotations, managedfields.OwnedBy(trimmed).Annotations)
	trimmed.Status.Conditions = trimConditions(pod)
	keepUpdate(trimmed, pod)
	keepSidecars(trimmed, pod)
	trimmed = boundPod(trimmed)
	internPod(trimmed)
	return trimmed
}

// livePage is the number of pods that are read at a time, which bounds the memory for large workloads and large pods: an
// object has up to 1.5 MiB.
const livePage = 50

// LivePods lists pods from the API server, not from the cache, and trims them as the cache does.
func LivePods(ctx context.Context, live client.Reader, options ...client.ListOption) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for next := ""; ; {
		var page corev1.PodList
		if err := live.List(ctx, &page, append(slices.Clone(options), client.Limit(livePage), client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			pods = append(pods, trimPod(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return pods, nil
		}
	}
}

// trimConditions keeps the conditions that kubelet does not write, and the ones of kubelet that are needed.
func trimConditions(pod *corev1.Pod) []corev1.PodCondition {
	if len(pod.Spec.ReadinessGates) > 0 {
		return pod.Status.Conditions
	}
	var trimmed []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodInitialized:
			trimmed = append(trimmed, corev1.PodCondition{Type: c.Type, Status: c.Status})
		case c.Type == corev1.PodReady:
			trimmed = append(trimmed, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		case c.Type == corev1.DisruptionTarget && pod.DeletionTimestamp != nil:
			trimmed = append(trimmed, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		case !result.NativeCondition(c.Type):
			trimmed = append(trimmed, c)
		}
	}
	return trimmed
}

// trimAddresses keeps the addresses of a pod with one of each family: podIP has a single one.
func trimAddresses(pod *corev1.Pod) []corev1.PodIP {
	if len(pod.Status.PodIPs) < 2 {
		return nil
	}
	return slices.Clone(pod.Status.PodIPs[:2])
}

// trimOwners keeps the controller.
func trimOwners(pod *corev1.Pod) []metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	return []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller}}
}

func trimAnnotations(annotations map[string]string, owned map[string]bool) map[string]string {
	if len(annotations) == 0 {
		return nil
	}
	trimmed := make(map[string]string, len(annotations))
	for key, value := range annotations {
		if len(value) > maxCachedValue && !owned[key] {
			value = ""
		}
		trimmed[key] = value
	}
	return trimmed
}

// trimContainers keeps names, images, pull policies, resources, restart policies and rules, named ports, whether a SidecarSet has injected the
// container, and what marks it as one that is ended with the main containers.
func trimContainers(containers []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, len(containers))
	for i, c := range containers {
		trimmed[i] = corev1.Container{
			Name: c.Name, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, Resources: c.Resources, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules,
		}
		if v1beta1.IsInjected(&c) {
			trimmed[i].Env = []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}
		}
		for _, e := range c.Env {
			if (e.Name == v1beta1.EnvTerminateSidecar || e.Name == v1beta1.EnvTerminateSidecarWithImage) && len(e.Value) <= maxCachedImage {
				trimmed[i].Env = append(trimmed[i].Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
			}
		}
		for _, port := range c.Ports {
			if port.Name != "" {
				trimmed[i].Ports = append(trimmed[i].Ports, corev1.ContainerPort{Name: port.Name, ContainerPort: port.ContainerPort})
			}
		}
	}
	return trimmed
}

// trimStatuses keeps what identifies the instance, and since when it runs, or whether it waits or has ended.
func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i, s := range statuses {
		trimmed[i] = corev1.ContainerStatus{Name: s.Name, ContainerID: s.ContainerID, Ready: s.Ready, RestartCount: s.RestartCount}
		switch state := s.State; {
		case state.Running != nil:
			trimmed[i].State.Running = &corev1.ContainerStateRunning{StartedAt: state.Running.StartedAt}
		case state.Waiting != nil:
			trimmed[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: state.Waiting.Reason}
		case state.Terminated != nil:
			trimmed[i].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: state.Terminated.ExitCode}
		}
	}
	return trimmed
}
