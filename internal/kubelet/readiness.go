package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ReasonReadinessGatesNotReady is kubelet's reason in the condition Ready of a pod with a readiness gate whose condition is
// not True.
const ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"

// GateMessage is kubelet's message in the condition Ready when the condition of a readiness gate is False. Writing it
// together with the gate's condition causes no sync of the pod, because kubelet finds the condition as it expects it. Until
// its next sync kubelet's own copy of the status is outdated: its status manager, which compares all pods every 10 s,
// writes Ready True into the pod, and only that causes the sync. So this message is for pods that are changed again at
// once.
func GateMessage(gate corev1.PodConditionType) string {
	return fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but False", gate)
}

// DrainMessage differs from GateMessage. When it is written with the condition of the gate, kubelet syncs the pod, replaces
// it by its own message, and keeps Ready False while the gate is False.
func DrainMessage(gate corev1.PodConditionType) string {
	return fmt.Sprintf("readiness gate %q has become False", gate)
}
