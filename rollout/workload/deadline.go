package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// defaultProgressDeadline is the default of progressDeadlineSeconds in the CRD.
const defaultProgressDeadline int32 = 600

// started returns from when the progress deadline of an update counts: its last write, or later the end of its drain, the return of a
// node, the start of a resize, which may be another one after the update, or the start of a container whose first instance was delayed by
// this or by kubelet's crash back-off.
func started(pod *corev1.Pod, recorded *record.Record) time.Time {
	last := recorded.Changed()
	if closed := gate.Closed(pod); closed != nil {
		drained := closed.LastTransitionTime.Add(time.Duration(recorded.Extension().DrainSeconds) * time.Second)
		if drained.After(last) {
			last = drained
		}
	}
	if ready := kubelet.Condition(&pod.Status, corev1.PodReady); ready != nil && unreplaced(pod, recorded) && ready.LastTransitionTime.After(last) {
		last = ready.LastTransitionTime.Time
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := kubelet.Condition(&pod.Status, kind); c != nil && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	for name, was := range recorded.Extension().Instances {
		status := kubelet.StatusOf(pod, name)
		if status == nil || status.State.Running == nil || status.LastTerminationState.Terminated == nil {
			continue
		}
		first := was.ContainerID != "" && was.ContainerID == status.LastTerminationState.Terminated.ContainerID
		if at := status.State.Running.StartedAt.Time; first && at.After(last) {
			last = at
		}
	}
	return last
}

// unreadyBefore reports whether a pod has not been ready since before its update, and before it was drained for it.
func unreadyBefore(pod *corev1.Pod, recorded *record.Record) bool {
	ready, begun := kubelet.Condition(&pod.Status, corev1.PodReady), recorded.State.UpdateTimestamp
	if closed := gate.Closed(pod); closed != nil && closed.LastTransitionTime.Before(&begun) {
		begun = closed.LastTransitionTime
	}
	return ready != nil && ready.Status != corev1.ConditionTrue && ready.LastTransitionTime.Before(&begun)
}

// unreplaced reports whether the pod still shows an instance that the update replaces.
func unreplaced(pod *corev1.Pod, recorded *record.Record) bool {
	for name, was := range recorded.Extension().Instances {
		status := kubelet.StatusOf(pod, name)
		if was.ContainerID != "" && (status == nil || status.ContainerID == "" || status.ContainerID == was.ContainerID) {
			return true
		}
	}
	return false
}
