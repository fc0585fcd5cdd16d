package crr

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// SidecarTerminated reports whether the pod's work is done and only its sidecars are left to be stopped, as
// OpenKruise's SidecarTerminator does through requests of this kind; being started again is not their purpose.
func SidecarTerminated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1beta1.ConditionSidecarTerminated
	})
}

// ContainerNamed returns the container of that name; nil if there is none.
func ContainerNamed(containers []corev1.Container, name string) *corev1.Container {
	if i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return &containers[i]
	}
	return nil
}

// StatusNamed returns the status of the container of that name; nil if kubelet has not reported one.
func StatusNamed(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	if i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
		return &statuses[i]
	}
	return nil
}

// RecreateStateOf returns what the status of the request says about one of its containers.
func RecreateStateOf(request *v1beta1.ContainerRecreateRequest, container string) (v1beta1.ContainerRecreateRequestRecreateState, bool) {
	for _, state := range request.Status.ContainerRecreateStates {
		if state.Name == container {
			return state, true
		}
	}
	return v1beta1.ContainerRecreateRequestRecreateState{}, false
}

// Stopped is the instance of a container that the request has stopped; empty if it has stopped none.
func Stopped(request *v1beta1.ContainerRecreateRequest, container string) string {
	state, ok := RecreateStateOf(request, container)
	if !ok || state.Phase == v1beta1.ContainerRecreateRequestPending {
		return ""
	}
	if state.ContainerID != "" {
		return state.ContainerID
	}
	for _, c := range request.Spec.Containers {
		if c.Name == container && c.StatusContext != nil {
			return c.StatusContext.ContainerID
		}
	}
	return ""
}

// PodEnded reports whether all containers of the pod have terminated for good.
func PodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// HasReadinessGate reports whether the pod can be made not ready through the readiness gate KruisePodReady.
func HasReadinessGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return gate.ConditionType == v1beta1.ReadinessGateKruisePodReady
	})
}

// NotDrained says that unreadyGracePeriodSeconds of a request have no effect, since its pod lacks the readiness gate; empty where they have.
func NotDrained(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) string {
	strategy := request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil || *strategy.UnreadyGracePeriodSeconds == 0 || pod == nil || HasReadinessGate(pod) {
		return ""
	}
	return "unreadyGracePeriodSeconds has no effect: pod " + pod.Name + " has no readiness gate " + v1beta1.ReadinessGateKruisePodReady +
		", so it stays in its Services until its containers are stopped"
}
