package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/kubelet"
)

const (
	// maxStopFailures in a row, not counting those of an unreachable runtime, fail the container.
	maxStopFailures = 5
)

// running: the old instance runs and is to be stopped.
func (s *subject) running(old Instance) {
	hook := s.preStop()
	if hook != nil && hook.TCPSocket != nil {
		s.fail(ReasonInvalidRequest, "preStop tcpSocket is not supported, and not by kubelet either: use exec, httpGet or sleep")
		return
	}
	if why := s.unstoppable(); why != "" && !s.act.Running {
		s.fail(ReasonNotPossibleHere, why)
		return
	}
	s.stopping = true
	if s.options.SignalsOnly && s.adopted {
		s.adopt()
		return
	}
	s.record()
	s.state.Message = "stopping"
	if s.act.Running {
		return
	}
	if s.act.Err != "" {
		if !s.act.Transient && s.act.Failures >= maxStopFailures {
			s.fail(ReasonStopFailed, fmt.Sprintf("%s (%d attempts)", s.act.Err, s.act.Failures))
			return
		}
		if s.retryLater() {
			return
		}
	}
	s.stop = &Stop{Container: s.spec.Name, ID: old.ID, Grace: s.grace(), PreStop: hook}
	if s.removes(old) {
		s.stop.Remove = append(s.observed.remains(s.spec.Name), old.ID)
	}
}

// adopt only records the instance that runs now, and it is stopped once that is stored. If it cannot be, the instance could not be
// told at the next look from the one that is started after it: either that one would be stopped too, and so on, or the
// request would succeed while its instance is still being stopped.
func (s *subject) adopt() {
	if s.observed.DropsIDs {
		s.fail(ReasonNotPossibleHere, "it has been restarted since the request was created, and the CRD of ContainerRecreateRequests "+
			"has no field for the instance that is to be stopped: create another request")
		return
	}
	s.record()
	s.revisit = s.now
}

// unstoppable says why the container must not or cannot be stopped from here; empty: it can.
func (s *subject) unstoppable() string {
	if s.options.SignalsOnly {
		if why := podrules.EndsForGood(kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name), s.grace()); why != "" {
			return why
		}
	}
	return s.observed.Unstoppable[s.spec.Name]
}

// preStop is the hook of a container or native sidecar in the pod; nil when it has none, or no time to run it.
func (s *subject) preStop() *corev1.LifecycleHandler {
	if s.grace() == 0 {
		return nil
	}
	return podrules.PreStop(s.observed.Pod, s.spec.Name)
}

// removes reports whether the instance is to be removed once stopped. Where the restart policy would not bring
// it back, removal would, so there only the request itself may ask for it.
func (s *subject) removes(old Instance) bool {
	if !kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name).Always() {
		return s.overrides()
	}
	return s.skipsBackoff() && delaysRestart(old, s.now)
}

func (s *subject) grace() time.Duration { return podrules.Grace(s.request, s.observed.Pod) }
