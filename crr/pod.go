package crr

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/record"
)

// RecreateStateOf returns the state of a container in the status of the request.
func RecreateStateOf(request *v1beta1.ContainerRecreateRequest, container string) (v1beta1.ContainerRecreateRequestRecreateState, bool) {
	for _, state := range request.Status.ContainerRecreateStates {
		if state.Name == container {
			return state, true
		}
	}
	return v1beta1.ContainerRecreateRequestRecreateState{}, false
}

// Stopped returns the ID of the instance that the request has stopped, or "" if it has stopped none.
func Stopped(request *v1beta1.ContainerRecreateRequest, container string) string {
	state, ok := RecreateStateOf(request, container)
	if !ok || state.Phase == v1beta1.ContainerRecreateRequestPending {
		return ""
	}
	if state.ContainerID != "" {
		return state.ContainerID
	}
	if state.Phase == v1beta1.ContainerRecreateRequestFailed { // for example at a deadline during the drain: perhaps nothing was stopped
		return record.Ordered(request, state)
	}
	return record.AtAdmission(request, container)
}

// PodEnded reports whether all containers of the pod have ended for good.
func PodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
