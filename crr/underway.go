package crr

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// stopSlack is how long a stop may take beyond its grace period: the kill, and kubelet's report of it.
const stopSlack = 10 * time.Second

// StopUnderWay reports whether the request is stopping containers of the pod, so that a disruption budget has to count
// the pod as unavailable whatever its status says. That is true for a request in progress. It is also true for a
// request that has ended or is being deleted while the pod's status still shows an instance that the request stops: the
// container runtime continues a stop after the deadline of its request, or after its daemon is gone, and kubelet then
// starts the next instance. It is false when the grace period and a few seconds have passed since the stop began. now
// is by the API server's clock.
func StopUnderWay(request *Request, pod *corev1.Pod, now time.Time) bool {
	if pod == nil || request.Spec.PodName != pod.Name || request.Namespace != pod.Namespace {
		return false
	}
	if uid := request.Labels[v1beta1.LabelPodUID]; uid != "" && uid != string(pod.UID) {
		return false
	}
	request = record.Apply(request)
	states := request.Status.ContainerRecreateStates
	ended, over := endOf(request)
	if !over {
		return request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating || slices.ContainsFunc(states, stopRecorded)
	}
	return slices.ContainsFunc(states, func(state v1beta1.ContainerRecreateRequestRecreateState) bool {
		status := kubelet.StatusOf(pod, state.Name)
		if status == nil || status.ContainerID == "" || status.ContainerID != record.Ordered(request, state) || kubelet.RestartPolicyOf(pod, state.Name).Final(status) {
			return false
		}
		since := ended
		if state.StopBegan != nil && state.StopBegan.Time.Before(since) {
			since = state.StopBegan.Time
		}
		return now.Before(since.Add(podrules.Grace(request, pod) + stopSlack))
	})
}

// endOf returns when the request ended or its deletion began, and false if it has not ended. It treats a completed
// request without a completion time as one that ended long ago; Refit does not write such requests.
func endOf(request *Request) (time.Time, bool) {
	switch {
	case request.Status.CompletionTime != nil:
		return request.Status.CompletionTime.Time, true
	case request.DeletionTimestamp != nil:
		return request.DeletionTimestamp.Time, true
	default:
		return time.Time{}, Completed(request)
	}
}
