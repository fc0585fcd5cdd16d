package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// reportPatience is how long after its start an instance may be unreported although another container keeps kubelet from
// reporting: kubelet may have sent a report before that container started again.
const reportPatience = 10 * time.Second

// blockedBy returns the name of a container because of which kubelet reports no change of the pod, or "". Kubelet has
// reported the end of this container as final, and its next instance runs. Kubelet then refuses the whole status of the
// pod, also what it says about other containers, as long as that instance runs (status manager, updateStatusInternal).
func (o Observation) blockedBy() string {
	for _, status := range o.Pod.Status.ContainerStatuses {
		if !kubelet.RestartPolicyOf(o.Pod, status.Name).Final(&status) {
			continue
		}
		newest, known := o.newest(status.Name)
		if !known {
			newest, known = o.Beside[status.Name]
		}
		if known && newest.State == identity.StateRunning && newest.ID.String() != status.ContainerID {
			return status.Name
		}
	}
	return ""
}

// unreportable returns why kubelet will not report the next instance of the container, or "".
func (s *subject) unreportable(status *corev1.ContainerStatus) string {
	if policy := kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name); policy.Final(status) {
		return fmt.Sprintf("kubelet had already reported the end of the one before, and under restartPolicy %s it never takes that back: "+
			"the pod will not show the new one", policy.Policy)
	}
	if blocker := s.observed.blockedBy(); blocker != "" {
		return fmt.Sprintf("kubelet reports no change of the pod while container %s runs, whose end it has reported as final: "+
			"the pod will not show the new one", blocker)
	}
	return ""
}

// failUnreported handles a container whose new instance runs if kubelet will not report that. It reports whether it has
// failed the container or waits for a last report.
func (s *subject) failUnreported(current Instance, status *corev1.ContainerStatus) bool {
	why := s.unreportable(status)
	if why == "" || status != nil && status.ContainerID == current.ID.String() && status.Ready {
		return false
	}
	final := kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name).Final(status)
	if up := s.now.Sub(current.StartedAt); !final && up >= 0 && up < reportPatience {
		s.revisit = current.StartedAt.Add(reportPatience)
		return false
	}
	s.fail(ReasonRestartNotReported, "the new container is running, but "+why)
	return true
}

// failUnstarted fails a container that kubelet has not started after the last touch of the pod, if kubelet would not
// report the start, nor why there is none. due is until when it is waited for.
func (s *subject) failUnstarted(status *corev1.ContainerStatus, due time.Time) {
	why := s.unreportable(status)
	switch {
	case why == "":
	case s.now.Before(due):
		s.revisit = due
	default:
		s.fail(ReasonRestartNotReported, fmt.Sprintf("kubelet has not started it after %d changes of the pod, and if it does: %s", s.action.Touches, why))
	}
}
