package trim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The functions of this file are for [Part.Keep].

// Annotations keeps the values of annotations, also if they are long.
func Annotations(kept, pod *corev1.Pod, keys ...string) {
	for _, key := range keys {
		if value, ok := pod.Annotations[key]; ok {
			kept.Annotations[key] = value
		}
	}
}

// Conditions keeps the conditions of these types as they are.
func Conditions(kept, pod *corev1.Pod, wanted func(corev1.PodConditionType) bool) {
	for i := range pod.Status.Conditions {
		if wanted(pod.Status.Conditions[i].Type) {
			kept.Status.Conditions[i] = pod.Status.Conditions[i]
		}
	}
}

// Transition keeps the status of a condition, and since when it has it.
func Transition(kept, pod *corev1.Pod, kind corev1.PodConditionType) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			transition(&kept.Status.Conditions[i], &pod.Status.Conditions[i])
		}
	}
}

func transition(kept, c *corev1.PodCondition) {
	kept.Type, kept.Status, kept.LastTransitionTime = c.Type, c.Status, c.LastTransitionTime
}

// ReadinessGates keeps the readiness gates of a pod and, if there are any, all conditions: kubelet computes Ready from them.
func ReadinessGates(kept, pod *corev1.Pod) {
	if len(pod.Spec.ReadinessGates) > 0 {
		kept.Spec.ReadinessGates = pod.Spec.ReadinessGates
		copy(kept.Status.Conditions, pod.Status.Conditions)
	}
}

// RestartPolicies keeps how kubelet handles the exit of each container.
func RestartPolicies(kept, pod *corev1.Pod) {
	kept.Spec.RestartPolicy = pod.Spec.RestartPolicy
	EachContainer(kept, pod, func(kept, c *corev1.Container) {
		kept.RestartPolicy, kept.RestartPolicyRules = c.RestartPolicy, c.RestartPolicyRules
	})
}

// EachContainer calls keep for each container and init container.
func EachContainer(kept, pod *corev1.Pod, keep func(kept, c *corev1.Container)) {
	for i := range pod.Spec.Containers {
		keep(&kept.Spec.Containers[i], &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		keep(&kept.Spec.InitContainers[i], &pod.Spec.InitContainers[i])
	}
}

// UpdatedFields keeps the fields of a container that an update in place changes or compares.
func UpdatedFields(kept, c *corev1.Container) {
	kept.Image, kept.Command, kept.Args, kept.Env, kept.Resources, kept.ResizePolicy = c.Image, c.Command, c.Args, c.Env, c.Resources, c.ResizePolicy
}

// Variable keeps a variable of a container.
func Variable(kept *corev1.Container, name, value string) {
	if !slices.ContainsFunc(kept.Env, func(e corev1.EnvVar) bool { return e.Name == name && e.Value == value }) {
		kept.Env = append(slices.Clip(kept.Env), corev1.EnvVar{Name: name, Value: value})
	}
}

// States keeps whether each instance runs and since when, why it waits, or with which code it has ended.
func States(kept, pod *corev1.Pod) {
	eachStatus(kept, pod, func(kept, status *corev1.ContainerStatus) {
		to := &kept.State
		switch state := &status.State; {
		case *to != (corev1.ContainerState{}): // kept before
		case state.Running != nil:
			to.Running = &corev1.ContainerStateRunning{StartedAt: state.Running.StartedAt}
		case state.Waiting != nil:
			to.Waiting = &corev1.ContainerStateWaiting{Reason: state.Waiting.Reason}
		case state.Terminated != nil:
			to.Terminated = &corev1.ContainerStateTerminated{ExitCode: state.Terminated.ExitCode}
		}
	})
}

// Statuses keeps the container statuses, without fields that only kubelet needs.
func Statuses(kept, pod *corev1.Pod) {
	eachStatus(kept, pod, func(kept, status *corev1.ContainerStatus) {
		*kept = *status
		kept.Resources, kept.VolumeMounts, kept.User = nil, nil, nil
	})
}

func eachStatus(kept, pod *corev1.Pod, keep func(kept, status *corev1.ContainerStatus)) {
	for i := range pod.Status.ContainerStatuses {
		keep(&kept.Status.ContainerStatuses[i], &pod.Status.ContainerStatuses[i])
	}
	for i := range pod.Status.InitContainerStatuses {
		keep(&kept.Status.InitContainerStatuses[i], &pod.Status.InitContainerStatuses[i])
	}
}
