package budget

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
)

// StuckAfter is how long a pod has to be not ready until it is no longer expected to become ready by itself. It is the default
// of progressDeadlineSeconds of a Deployment. A record of an update that is older no longer shows that one is under way.
const StuckAfter = 10 * time.Minute

// stopLook is when to look again at a pod that is being stopped for a request that has ended, unless its status changes before.
const stopLook = 3 * time.Second

// Pod is a pod as budgets see it.
type Pod struct {
	Name   string
	Labels map[string]string
	// Ready says that it serves: its condition Ready is True and it is not being deleted.
	Ready bool
	// Available says that it has been ready for as long as is asked for, and that nothing is under way on it.
	Available bool
	// UnderWay says that a restart, an update or an eviction has been begun and has not taken effect.
	UnderWay bool
	// Stuck says that it is not ready and cannot become ready by itself.
	Stuck bool
}

// Observe says what a pod is. Requests are those of its namespace that name it, whoever has created them. Again is when the answer
// changes although nothing else does; zero for never.
func Observe(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, minReady time.Duration, now time.Time) (p Pod, again time.Time) {
	return ObserveBeside("", pod, requests, minReady, now)
}

// ObserveBeside is Observe without the record of the update by one SidecarSet, of which the caller knows how far it has come.
func ObserveBeside(sidecarSet string, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, minReady time.Duration, now time.Time) (p Pod, again time.Time) {
	p = Pod{Name: pod.Name, Labels: pod.Labels, Ready: pod.DeletionTimestamp == nil && kubelet.Ready(pod)}
	underWay, until := underWay(pod, requests, sidecarSet, now)
	p.UnderWay, again = underWay, until
	if !p.Ready {
		stuck, at := stuck(pod, now)
		p.Stuck = stuck
		return p, crr.Earlier(at, again)
	}
	since := kubelet.Condition(&pod.Status, corev1.PodReady).LastTransitionTime.Time
	available := since.Add(minReady)
	if now.Before(available) {
		again = crr.Earlier(available, again)
		return p, again
	}
	p.Available = !p.UnderWay
	return p, again
}

// underWay reports whether something has been begun on the pod and has not taken effect, beside an update by the SidecarSet.
func underWay(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, except string, now time.Time) (_ bool, until time.Time) {
	if pod.DeletionTimestamp != nil || pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation {
		return true, time.Time{}
	}
	for _, request := range requests {
		switch {
		case !Restarts(request, pod):
		case !crr.Completed(request) && request.DeletionTimestamp == nil:
			return true, time.Time{}
		case crr.StopUnderWay(request, pod, now):
			return true, now.Add(stopLook)
		}
	}
	if claim := ClaimOn(pod, now); claim != nil && claim.Holding {
		return true, claim.Until.Time
	}
	known, err := facts.Read(pod)
	if err != nil {
		known = nil // what others have written there holds up nobody
	}
	for _, recorded := range record.All(pod) {
		if except != "" && recorded.SidecarSet == except {
			continue
		}
		written := recorded.Changed()
		if age := now.Sub(written); age >= StuckAfter || age < -StuckAfter { // a time far ahead would last for ever
			continue
		}
		if kind := inplace.Next(pod, recorded, known, now).Kind; kind == inplace.KindStep || kind == inplace.KindWait {
			return true, written.Add(StuckAfter)
		}
	}
	return false, time.Time{}
}

// Restarts reports whether the request is about this pod, and not about one that had its name before.
func Restarts(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) bool {
	uid := request.Labels[v1beta1.LabelPodUID]
	return request.Spec.PodName == pod.Name && (uid == "" || uid == string(pod.UID))
}

// stuck reports whether a pod that is not ready stays so unless somebody does something, or when it is taken to.
func stuck(pod *corev1.Pod, now time.Time) (_ bool, at time.Time) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if stays(pod, &statuses[i]) {
				return true, time.Time{}
			}
		}
	}
	since := pod.CreationTimestamp.Time
	if c := kubelet.Condition(&pod.Status, corev1.PodReady); c != nil {
		since = c.LastTransitionTime.Time
	}
	if at = since.Add(StuckAfter); now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

// stays reports whether a container does not run and will not by itself, or not soon. The reasons are those that kubelet sets
// (pkg/kubelet/container/sync_result.go, pkg/kubelet/images/types.go).
func stays(pod *corev1.Pod, status *corev1.ContainerStatus) bool {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return true
		}
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode == 0 && !isMain(pod, status.Name) {
		return false // an init container that has done its work
	}
	return kubelet.RestartPolicyOf(pod, status.Name).Final(status)
}

// isMain reports whether the container is not an init container.
func isMain(pod *corev1.Pod, name string) bool {
	return crr.ContainerNamed(pod.Spec.Containers, name) != nil
}
