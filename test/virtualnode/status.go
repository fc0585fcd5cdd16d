package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchStatus writes what kubelet would write of a status. Labels, annotations and conditions that others have written stay.
func (p *provider) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if reported(pod.Status, status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	_, err = p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("patch status of pod: %w", err)
	}
	return nil
}

// statusOf is the status of a pod, from the one of its pod of the backend.
func statusOf(pod, backend *corev1.Pod) corev1.PodStatus {
	from := backend.Status
	status := corev1.PodStatus{
		Phase: from.Phase, Reason: from.Reason, Message: from.Message, StartTime: from.StartTime,
		PodIP: from.PodIP, PodIPs: from.PodIPs, HostIP: from.HostIP, HostIPs: from.HostIPs,
		InitContainerStatuses: from.InitContainerStatuses, ContainerStatuses: from.ContainerStatuses, QOSClass: from.QOSClass,
	}
	for _, condition := range from.Conditions {
		condition.ObservedGeneration = 0
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			applyGates(&condition, pod)
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// applyGates applies the readiness gates of the pod, which its pod of the backend does not have.
func applyGates(ready *corev1.PodCondition, pod *corev1.Pod) {
	for _, gate := range pod.Spec.ReadinessGates {
		isTrue := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !isTrue {
			ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
			ready.Message = fmt.Sprintf("corresponding condition of pod readiness gate %q is not True", gate.ConditionType)
			return
		}
	}
}

// reported reports whether a pod already has a status.
func reported(has, status corev1.PodStatus) bool {
	for _, condition := range status.Conditions {
		if !slices.ContainsFunc(has.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == condition.Type && c.Status == condition.Status && c.Reason == condition.Reason
		}) {
			return false
		}
	}
	return has.Phase == status.Phase && has.PodIP == status.PodIP &&
		equality.Semantic.DeepEqual(has.ContainerStatuses, status.ContainerStatuses) &&
		equality.Semantic.DeepEqual(has.InitContainerStatuses, status.InitContainerStatuses)
}

// endOf is the status of a pod whose containers the backend does not have any more.
func endOf(was corev1.PodStatus) corev1.PodStatus {
	status := *was.DeepCopy()
	if status.Phase != corev1.PodSucceeded {
		status.Phase = corev1.PodFailed
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].State.Terminated == nil {
				statuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Deleted", FinishedAt: metav1.Now()}}
			}
			statuses[i].Ready = false
		}
	}
	return status
}
