package result

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// NativeCondition reports whether kubelet or a controller, also of Refit and OpenKruise, writes a condition of pods. Results must not use
// such a condition: both writers would overwrite it in turn, and controllers decide by it.
func NativeCondition(condition corev1.PodConditionType) bool {
	return slices.Contains([]corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.DisruptionTarget,
		corev1.PodReadyToStartContainers, corev1.PodResizePending, corev1.PodResizeInProgress,
		"PodHasNetwork", "AllContainersRestarting", v1beta1.ReadinessGateKruisePodReady, v1beta1.ReadinessGateInPlaceUpdateReady,
		v1beta1.ConditionSidecarTerminated, v1beta1.ConditionSidecarSetUpgradable,
	}, condition)
}
