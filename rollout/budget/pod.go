package budget

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
)

// StuckAfter is how long a pod must be not ready until it is no longer expected to become ready by itself. It is the
// default of progressDeadlineSeconds of a Deployment. The record of an older update does not show any more that an
// update is in progress.
const StuckAfter = 10 * time.Minute

// stopLook is when to check a pod again that is being stopped for a completed request, unless its status changes before.
const stopLook = 3 * time.Second

// Pod is a pod as budgets see it.
type Pod struct {
	Name   string
	Labels map[string]string
	// Ready says that the pod serves: its condition Ready is True and it is not being deleted.
	Ready bool
	// Available says that it has been ready for the required time, and that no operation is in progress on it.
	Available bool
	// UnderWay says that a restart, an update or an eviction has begun and has not taken effect, or that the pod has
	// not been ready since then and may still become ready.
	UnderWay bool
	// Left says that the only operation in progress is a recorded update that some process must continue: nothing
	// happens to the pod by itself.
	Left bool
	// Stuck says that it is not ready and cannot become ready by itself.
	Stuck bool
}

// Rank is lower for a pod that is to be taken out of service earlier: first pods that cannot become ready by themselves,
// then other pods that do not serve, then pods that are unavailable for another reason.
func (p *Pod) Rank() int {
	switch {
	case p.Stuck:
		return 0
	case !p.Ready:
		return 1
	case !p.Available:
		return 2
	default:
		return 3
	}
}

// Observe returns the state of a pod for budgets. requests are the requests of its namespace that name it, whoever has
// created them. again is when the state changes even without a change of the objects.
func Observe(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, minReady time.Duration, now time.Time) (p Pod, again recheck.At) {
	return ObserveBeside("", pod, requests, minReady, now)
}

// ObserveBeside is like Observe, but ignores the record of the update by one SidecarSet, whose progress the caller knows.
func ObserveBeside(sidecarSet string, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, minReady time.Duration, now time.Time) (p Pod, again recheck.At) {
	p = Pod{Name: pod.Name, Labels: pod.Labels, Ready: pod.DeletionTimestamp == nil && kubelet.Ready(pod)}
	p.UnderWay, p.Left, again = underWay(pod, requests, sidecarSet, now)
	if !p.Ready {
		stuck, at := stuck(pod, now)
		p.Stuck = stuck
		p.UnderWay = p.UnderWay || !stuck && recovering(pod, requests, now)
		return p, again.Or(at)
	}
	since := kubelet.Condition(&pod.Status, corev1.PodReady).LastTransitionTime.Time
	available := since.Add(minReady)
	if minReady > 0 && now.Before(available) { // without minReady the clock of the node does not matter, as for Kubernetes' own controllers
		return p, again.Or(available)
	}
	p.Available = !p.UnderWay
	return p, again
}

// underWay reports whether an operation on the pod has begun and has not taken effect, apart from an update by the
// SidecarSet.
func underWay(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, except string, now time.Time) (is, left bool, until recheck.At) {
	if pod.DeletionTimestamp != nil || kubelet.Unobserved(pod) {
		return true, false, recheck.At{}
	}
	for _, request := range requests {
		switch {
		case !Restarts(request, pod):
		case !crr.Completed(request) && request.DeletionTimestamp == nil:
			return true, false, recheck.At{}
		case crr.StopUnderWay(request, pod, now):
			return true, false, recheck.On(now.Add(stopLook))
		}
	}
	if claim := ClaimOn(pod, now); claim != nil && claim.Holding {
		return true, false, recheck.On(claim.Until.Time)
	}
	return updating(pod, except, now)
}

// updating reports whether an update of the pod is recorded that has not ended. left says that the next action is a
// write, which only a user's command makes.
func updating(pod *corev1.Pod, except string, now time.Time) (is, left bool, until recheck.At) {
	known, err := reported.Read(pod)
	if err != nil {
		known = nil // ignore unreadable annotations, which others may have written
	}
	for _, recorded := range record.All(pod) {
		if except != "" && recorded.SidecarSet == except {
			continue
		}
		if kind, unfinished := next(pod, recorded, known, now); unfinished {
			of := kind == inplace.KindStep && recorded.SidecarSet == "" && recorded.State.Refit != nil
			is, left, until = true, of && (left || !is), until.Or(recorded.Changed().Add(StuckAfter))
		}
	}
	return is, left, until
}

// next returns what comes next in a recorded update, and whether the update is in progress.
func next(pod *corev1.Pod, recorded *record.Record, known reported.Containers, now time.Time) (kind inplace.Kind, unfinished bool) {
	if !recent(recorded.Changed(), now) {
		return kind, false
	}
	kind = inplace.Next(pod, recorded, known, now).Kind
	return kind, kind == inplace.KindStep || kind == inplace.KindWait
}

// UpdatedBy returns the SidecarSet whose update of the pod is in progress; "" if there is none.
func UpdatedBy(pod *corev1.Pod, now time.Time) string {
	known, err := reported.Read(pod)
	if err != nil {
		known = nil // ignore unreadable annotations, which others may have written
	}
	for _, recorded := range record.All(pod) {
		if _, unfinished := next(pod, recorded, known, now); unfinished && recorded.SidecarSet != "" {
			return recorded.SidecarSet
		}
	}
	return ""
}

// Restarts reports whether the request is for this pod, and not for an earlier pod with its name.
func Restarts(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) bool {
	uid := request.Labels[v1beta1.LabelPodUID]
	return request.Spec.PodName == pod.Name && (uid == "" || uid == string(pod.UID))
}

// stuck reports whether a pod that is not ready stays so without intervention, or otherwise when it will count as stuck.
func stuck(pod *corev1.Pod, now time.Time) (_ bool, at time.Time) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if staysDown(pod, &statuses[i]) {
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

// staysDown reports whether a container does not run and will not run soon without intervention. The reasons come from
// kubelet (pkg/kubelet/container/sync_result.go, pkg/kubelet/images/types.go).
func staysDown(pod *corev1.Pod, status *corev1.ContainerStatus) bool {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return true
		}
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode == 0 && !isMain(pod, status.Name) {
		return false // an init container that has completed
	}
	return kubelet.RestartPolicyOf(pod, status.Name).Final(status)
}

// isMain reports whether the container is not an init container.
func isMain(pod *corev1.Pod, name string) bool {
	return kubelet.ContainerIn(pod.Spec.Containers, name) != nil
}
