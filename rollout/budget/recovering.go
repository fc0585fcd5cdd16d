package budget

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// lateReport is how much later than the start of a container the pod may become not ready in kubelet's report, although
// it has not been ready in between: kubelet updates the status after it has been notified of the start.
const lateReport = 5 * time.Second

// recovering reports whether a pod that is not ready has not been ready since one of its containers was restarted or
// updated. Then the operation still counts as in progress. Otherwise more pods, which are not ready only for a moment,
// would be made unavailable too.
func recovering(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) bool {
	condition := kubelet.Condition(&pod.Status, corev1.PodReady)
	if condition == nil {
		return false
	}
	since := condition.LastTransitionTime.Time
	for _, request := range requests {
		if Restarts(request, pod) && crr.Completed(request) && recent(request.CreationTimestamp.Time, now) && started(pod, replacedBy(request, pod), since) {
			return true
		}
	}
	for _, recorded := range record.All(pod) {
		// A pod that could not become ready before its update is not expected to become ready afterwards either.
		before := recorded.Extension().Unready
		broken := before != nil && before.Stuck && before.Since.Time.Equal(since)
		names := slices.AppendSeq(slices.Collect(maps.Keys(recorded.Extension().Instances)), maps.Keys(recorded.State.LastContainerStatuses))
		if !broken && recent(recorded.Changed(), now) && started(pod, names, since) {
			return true
		}
	}
	return false
}

// recent reports whether a pod may still become ready after an operation that began then. It is false for times in the
// future, because a forged one would count for ever.
func recent(begun, now time.Time) bool {
	age := now.Sub(begun)
	return age < StuckAfter && age >= -StuckAfter
}

// replacedBy returns the containers of a request for which the pod shows another instance than the one to replace.
func replacedBy(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) (names []string) {
	for _, container := range request.Spec.Containers {
		status := kubelet.StatusOf(pod, container.Name)
		if status != nil && container.StatusContext != nil && status.ContainerID != container.StatusContext.ContainerID {
			names = append(names, container.Name)
		}
	}
	return names
}

// started reports whether one of the containers was started while the pod was not ready, or when it became not ready.
func started(pod *corev1.Pod, names []string, notReadySince time.Time) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		status := kubelet.StatusOf(pod, name)
		return status != nil && status.State.Running != nil && notReadySince.Before(status.State.Running.StartedAt.Add(lateReport))
	})
}
