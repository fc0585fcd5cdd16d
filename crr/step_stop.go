package crr

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// maxStopFailures is the number of consecutive failures that fail the container. Failures because the runtime is
// unreachable do not count.
const maxStopFailures = 5

// handleRunning handles a container whose old instance runs and has to be stopped.
func (s *subject) handleRunning(old Instance) {
	hook := podrules.PreStop(s.observed.Pod, s.spec.Name, s.grace())
	if hook != nil && hook.TCPSocket != nil {
		s.fail(ReasonInvalidRequest, "preStop tcpSocket is not supported, and not by kubelet either: use exec, httpGet or sleep")
		return
	}
	if why := s.unstoppable(); why != "" && !s.action.Running {
		s.fail(ReasonNotPossibleHere, why)
		return
	}
	s.stopping = true
	if !s.action.Running && !s.podGoesOn() {
		if !s.restarting() {
			s.fail(ReasonRestartPolicyForbidsRestart, podrules.EndsPod(s.observed.Pod, s.spec.Name))
		}
		return
	}
	if s.options.SignalsOnly && s.adopted {
		s.recordAdopted()
		return
	}
	s.record()
	s.state.Message = "stopping"
	if s.action.Running {
		return
	}
	if s.action.Err != "" {
		if !s.action.Transient && s.action.Failures >= maxStopFailures {
			s.fail(ReasonStopFailed, fmt.Sprintf("%s (%d attempts)", s.action.Err, s.action.Failures))
			return
		}
		if s.action.Unbegun {
			s.state.StopBegan = nil
		}
		if s.retryLater() {
			return
		}
	}
	s.stop = &Stop{Container: s.spec.Name, ID: old.ID}
	now := s.now.Add(s.observed.ClockOffset).Truncate(time.Microsecond) // the precision that is stored
	if s.state.StopBegan == nil && !s.observed.Later {
		s.state.StopBegan = new(metav1.NewMicroTime(now))
	}
	s.stop.Grace, s.stop.PreStop = podrules.Rest(s.grace(), hook, s.state.StopBegan, now)
	if s.removes(old) {
		s.stop.Remove = append(s.observed.exitedInstances(s.spec.Name), old.ID)
	}
}

// podGoesOn reports whether the pod keeps running while this container does not.
func (s *subject) podGoesOn() bool {
	pod := s.observed.Pod
	if s.options.SignalsOnly || !podrules.NeedsOther(s.request, pod, s.spec.Name) {
		return true
	}
	return slices.ContainsFunc(podrules.Others(pod, s.spec.Name), func(other corev1.ContainerStatus) bool {
		if _, asked := RecreateStateOf(&Request{Status: s.status}, other.Name); !asked {
			beside, known := s.observed.Beside[other.Name]
			return s.observed.Beside == nil || known && beside.State == identity.StateRunning
		}
		newest, known := s.observed.newest(other.Name)
		return known && newest.State == identity.StateRunning && newest.ID.String() == other.ContainerID && !s.observed.Actions[other.Name].Running
	})
}

// restarting reports whether another container of the request is being restarted.
func (s *subject) restarting() bool {
	return slices.ContainsFunc(s.status.ContainerRecreateStates, func(state v1beta1.ContainerRecreateRequestRecreateState) bool {
		return state.Name != s.spec.Name && stopRecorded(state) && !finished(state.Phase)
	})
}

// recordAdopted records the instance that runs now. It is stopped only after the record is stored. Without the record
// the next step could not distinguish this instance from the next one: either the next one would be stopped too, and so
// on, or the request would succeed while its instance is still being stopped.
func (s *subject) recordAdopted() {
	if s.observed.DropsIDs {
		s.fail(ReasonNotPossibleHere, "it has been restarted since the request was created, and the CRD of ContainerRecreateRequests "+
			"has no field for the instance that is to be stopped: create another request")
		return
	}
	s.record()
	s.revisit = s.now
}

// unstoppable returns why the container must not or cannot be stopped from here, or "" if it can.
func (s *subject) unstoppable() string {
	if s.options.SignalsOnly {
		if why := podrules.EndsForGood(kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name), s.grace()); why != "" {
			return why
		}
	}
	return s.observed.Unstoppable[s.spec.Name]
}

// removes reports whether to remove the instance after its stop. If the restart policy does not restart the container,
// a removal would, so in that case the request itself must ask for it.
func (s *subject) removes(old Instance) bool {
	if !kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name).Always() {
		return s.overrides()
	}
	return s.skipsBackoff() && delaysRestart(old, s.now)
}

func (s *subject) grace() time.Duration { return podrules.Grace(s.request, s.observed.Pod) }
