package result

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NativeCondition reports whether kubelet or a controller writes a condition of pods. Results must not use such a
// condition, because both writers would overwrite it in turn.
func NativeCondition(condition corev1.PodConditionType) bool {
	return slices.Contains([]corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.DisruptionTarget,
		corev1.PodReadyToStartContainers, corev1.PodResizePending, corev1.PodResizeInProgress,
		"PodHasNetwork", "AllContainersRestarting", "KruisePodReady", "InPlaceUpdateReady",
	}, condition)
}
