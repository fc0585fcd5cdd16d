package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ReasonReadinessGatesNotReady is kubelet's reason for condition Ready of a pod with a readiness gate whose condition is not True.
const ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"

// GateMessage is kubelet's message in condition Ready when the condition of a readiness gate is False. Whoever writes it together
// with the gate's condition causes no sync of the pod, since kubelet finds the condition as it expects it. Until its next sync
// kubelet's own copy of the status is outdated: its status manager, which compares all pods every 10 s, writes Ready True into
// the pod, and only that causes the sync. So this message is for pods that are changed again at once.
func GateMessage(gate corev1.PodConditionType) string {
	return fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but False", gate)
}

// DrainMessage is another message than GateMessage, so that kubelet syncs the pod when it is written with the condition of the
// gate, replaces it by its own, and leaves Ready False for as long as the gate is.
func DrainMessage(gate corev1.PodConditionType) string {
	return fmt.Sprintf("readiness gate %q has become False", gate)
}
