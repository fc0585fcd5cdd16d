package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// keepSidecars adds to a trimmed pod why a SidecarSet was not injected. If one was injected, it adds what the rollout of
// SidecarSets needs: when the pod became ready, and the injected containers with their statuses.
func keepSidecars(trimmed, pod *corev1.Pod) {
	for key, value := range pod.Annotations {
		if strings.HasPrefix(key, "kruise.io/sidecarset-") || strings.HasPrefix(key, "sidecarset.refit.dev/") {
			trimmed.Annotations[key] = value
		}
	}
	if pod.Annotations[v1beta1.AnnotationSidecarSetList] == "" {
		return
	}
	// The daemon's report shows whether the running instance is the one of an update.
	if _, updated := pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; updated {
		if value, ok := pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta]; ok {
			trimmed.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = value
		}
	}
	trimmed.Status.Conditions = pod.Status.Conditions
	keepContainers(trimmed.Spec.Containers, pod.Spec.Containers, v1beta1.IsInjected)
	keepContainers(trimmed.Spec.InitContainers, pod.Spec.InitContainers, v1beta1.IsInjected)
	keepStatuses(trimmed, pod)
}

// keepStatuses replaces the trimmed container statuses by complete ones, without fields that only kubelet needs.
func keepStatuses(trimmed, pod *corev1.Pod) {
	for _, list := range [][2][]corev1.ContainerStatus{
		{trimmed.Status.ContainerStatuses, pod.Status.ContainerStatuses}, {trimmed.Status.InitContainerStatuses, pod.Status.InitContainerStatuses},
	} {
		for i := range list[1] {
			list[0][i] = list[1][i]
			list[0][i].Resources, list[0][i].VolumeMounts, list[0][i].User = nil, nil, nil
		}
	}
}

// keepContainers adds the fields that an update in place changes, for the wanted containers.
func keepContainers(trimmed, containers []corev1.Container, wanted func(*corev1.Container) bool) {
	for i := range containers {
		c := &containers[i]
		if !wanted(c) {
			continue
		}
		trimmed[i].Image, trimmed[i].Command, trimmed[i].Args, trimmed[i].Env, trimmed[i].Resources, trimmed[i].ResizePolicy = c.Image, c.Command, c.Args, c.Env, c.Resources, c.ResizePolicy
	}
}
