package inpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// instances returns the instances of each container in the pod's status, newest first: the one that runs or ended last,
// and the one before it.
func instances(pod *corev1.Pod) map[string][]crr.Instance {
	all := map[string][]crr.Instance{}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, s := range statuses {
			all[s.Name] = instancesOf(s)
		}
	}
	return all
}

func instancesOf(s corev1.ContainerStatus) []crr.Instance {
	var found []crr.Instance
	add := func(i crr.Instance, ok bool) {
		if ok && (len(found) == 0 || found[0].ID != i.ID) {
			found = append(found, i)
		}
	}
	add(instanceOf(s.State, s.ContainerID, s.RestartCount))
	last := s.LastTerminationState
	if last.Terminated != nil {
		add(instanceOf(last, last.Terminated.ContainerID, s.RestartCount-1))
	}
	return found
}

// instanceOf returns the instance of a container state, and false if the state names none.
func instanceOf(state corev1.ContainerState, id string, restarts int32) (crr.Instance, bool) {
	i := crr.Instance{RestartCount: max(restarts, 0)}
	switch {
	case state.Running != nil:
		i.State, i.StartedAt = identity.StateRunning, state.Running.StartedAt.Time
	case state.Terminated != nil:
		i.State = identity.StateExited
		i.StartedAt, i.FinishedAt = state.Terminated.StartedAt.Time, state.Terminated.FinishedAt.Time
		i.ExitCode = state.Terminated.ExitCode
		id = state.Terminated.ContainerID
	default: // waiting: the last termination state has the instance
		return i, false
	}
	var err error
	i.ID, err = identity.ParseContainerID(id)
	return i, err == nil
}

// runtimeOf returns the scheme of the pod's container IDs.
func runtimeOf(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if id, err := identity.ParseContainerID(s.ContainerID); err == nil {
			return id.Runtime
		}
	}
	return ""
}
