package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wait"
)

const (
	// relist is how long kubelet takes to notice that an instance was removed: its relist period of 1 s and a margin.
	relist = 1200 * time.Millisecond
	// maxTouches limits the touches of a pod whose container kubelet does not start. The delay between them doubles.
	maxTouches = 5
	// eventedTouches is the number of touches without effect after which kubelet is assumed not to relist (EventedPLEG)
	// and to keep its back-off.
	eventedTouches = 2
	// maxRetryDelay limits the delay between failed attempts. The first delay is one second.
	maxRetryDelay = 30 * time.Second
)

// step is the contribution of one container to a decision.
type step struct {
	state    v1beta1.ContainerRecreateRequestRecreateState
	stop     *Stop
	start    *Start
	stopping bool // the next container has to wait
	revisit  time.Time
	failure  string // the reason, if the container has just failed
	// heldUntil is the end of kubelet's back-off; zero if there is none or kubelet does not report it.
	heldUntil time.Time
}

// subject is one container of the request whose step is being decided.
type subject struct {
	*planner
	step
	spec   v1beta1.ContainerRecreateRequestContainer
	action ActionState
	old    identity.ContainerID // the instance to replace
	// adopted says that old is not the instance at admission and has not been recorded yet.
	adopted bool
}

func (p *planner) step(spec v1beta1.ContainerRecreateRequestContainer, state v1beta1.ContainerRecreateRequestRecreateState) step {
	s := &subject{planner: p, step: step{state: state}, spec: spec, action: p.observed.Actions[spec.Name]}
	newest, known := p.observed.newest(spec.Name)
	if err := s.identify(newest, known); err != nil {
		s.fail(ReasonInvalidRequest, err.Error())
		return s.step
	}
	down := !known || newest.State == identity.StateExited
	if down && s.endedForGood(newest, known) {
		s.begin()
		s.state.Phase, s.state.Message = v1beta1.ContainerRecreateRequestSucceeded, ""
		return s.step
	}
	switch phase := p.observed.Pod.Status.Phase; {
	case down && PodEnded(p.observed.Pod):
		s.begin()
		s.failNotRestarted(newest, known, fmt.Sprintf("the pod has ended with phase %s, so kubelet starts nothing in it", phase))
	case !known:
		s.handleMissing()
	case newest.State == identity.StateExited:
		s.handleExited(newest)
	case newest.State == identity.StateCreated:
		s.wait("being started")
	case newest.ID == s.old:
		s.handleRunning(newest)
	case newest.State == identity.StateUnknown:
		s.wait("state unknown to the runtime")
	default:
		s.handleReplaced(newest)
	}
	return s.step
}

// endedForGood reports whether a sidecar of a pod whose work is done has been stopped and will not be started again.
// That is the purpose of such a request.
func (s *subject) endedForGood(last Instance, known bool) bool {
	pod := s.observed.Pod
	if !podrules.SidecarTerminated(pod) || s.action.Running {
		return false
	}
	return !known || PodEnded(pod) || pod.DeletionTimestamp != nil || !kubelet.RestartPolicyOf(pod, s.spec.Name).Restarts(last.ExitCode)
}

// identify determines the instance to replace: the one recorded in the state, or else the one at admission. If the
// latter is gone, it is the newest instance for a request with forceRecreate, and also for a container that does not
// run, because the container only needs a start.
func (s *subject) identify(newest Instance, known bool) error {
	if s.state.ContainerID != "" {
		id, err := identity.ParseContainerID(s.state.ContainerID)
		s.old = id
		return err
	}
	if s.spec.StatusContext == nil || s.spec.StatusContext.ContainerID == "" {
		return fmt.Errorf("no statusContext or empty containerID in %s container", s.spec.Name)
	}
	id, err := identity.ParseContainerID(s.spec.StatusContext.ContainerID)
	if err != nil {
		return err
	}
	if s.observed.Runtime != "" && id.Runtime != s.observed.Runtime {
		return fmt.Errorf("failed to find runtime service: the container runs on %s, this node's daemon is connected to %s", id.Runtime, s.observed.Runtime)
	}
	s.old = id
	if known && newest.ID != id && (s.force() || newest.State == identity.StateExited) {
		s.old, s.adopted = newest.ID, true
	}
	return nil
}

func (s *subject) force() bool {
	return s.request.Spec.Strategy != nil && s.request.Spec.Strategy.ForceRecreate
}

// handleExited handles a container of which no instance runs and whose last instance the runtime still has.
func (s *subject) handleExited(last Instance) {
	policy := kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name)
	replacedOnce := last.ID != s.old
	if s.action.Running { // the stop has not returned yet
		s.record()
		s.stopping = true
		return
	}
	s.begin()
	if !policy.Restarts(last.ExitCode) && (replacedOnce || !s.overrides()) {
		s.failNotRestarted(last, true, fmt.Sprintf("it exited with code %d and restartPolicy %s does not start it again", last.ExitCode, policy.Policy))
		return
	}
	status := kubelet.StatusOf(s.observed.Pod, s.spec.Name)
	if replacedOnce {
		s.waitForKubelet(fmt.Sprintf("the new container exited with code %d; ", last.ExitCode), status)
		return
	}
	held := delaysRestart(last, last.FinishedAt) || !kubelet.BackoffUntil(status).IsZero()
	if s.overrides() && !policy.Always() || s.skipsBackoff() && held {
		s.removeExited()
		return
	}
	s.waitForKubelet("stopped; ", status)
}

// failNotRestarted fails a container that has ended and that kubelet does not start again: before the restart, or after
// its new instance has ended.
func (s *subject) failNotRestarted(last Instance, known bool, why string) {
	reason := ReasonRestartPolicyForbidsRestart
	if known && last.ID != s.old {
		reason, why = ReasonEndedAfterRestart, "the container was restarted, and has ended again: "+why
	}
	s.fail(reason, why)
}

// removeExited removes the exited instances, so that kubelet forgets them. The next step is handleMissing.
func (s *subject) removeExited() {
	s.state.Message = "removing the exited instances so that kubelet starts it without back-off"
	if s.action.Err != "" && s.retryLater() {
		return
	}
	s.start = &Start{Container: s.spec.Name, Remove: s.observed.exitedInstances(s.spec.Name)}
}

// retryLater reports whether the next attempt has to wait because the last one failed.
func (s *subject) retryLater() bool {
	s.state.Message = podrules.Short(s.action.Err) + ": trying again"
	due := s.action.Done.Add(wait.Backoff{First: time.Second, Last: maxRetryDelay}.After(s.action.Failures))
	if !s.now.Before(due) {
		return false
	}
	s.revisit = due
	return true
}

// handleMissing handles a container of which the runtime has no instance. Kubelet starts it when it notices. If kubelet
// has seen the exit before the removal, the pod has to be touched.
func (s *subject) handleMissing() {
	if s.action.Running {
		s.record()
		return
	}
	s.begin()
	status := kubelet.StatusOf(s.observed.Pod, s.spec.Name)
	s.waitForKubelet("stopped; ", status)
	revived := s.overrides() && !kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name).Always()
	if !revived && !s.skipsBackoff() {
		return
	}
	until := kubelet.BackoffUntil(status)
	if s.action.Touches >= eventedTouches && !until.IsZero() {
		s.state.Message += "; it did not heed the removal of the exited instance, as with the feature gate EventedPLEG"
		return
	}
	due := s.action.Done.Add(wait.Backoff{First: relist, Last: time.Minute}.After(s.action.Touches + 1))
	if s.action.Touches >= maxTouches {
		s.failUnstarted(status, due)
		return
	}
	if !s.action.Done.IsZero() && s.now.Before(due) {
		s.revisit = due
		return
	}
	s.start = &Start{Container: s.spec.Name, Touch: true}
}

// handleReplaced handles a container of which a new instance runs. The container succeeds when the pod's status reports
// the instance as ready and the instance has been up for long enough.
func (s *subject) handleReplaced(current Instance) {
	s.begin()
	status := kubelet.StatusOf(s.observed.Pod, s.spec.Name)
	if s.failUnreported(current, status) {
		return
	}
	if status == nil || status.ContainerID != current.ID.String() || !status.Ready {
		s.wait("the new container is running; waiting for it to be ready")
		return
	}
	if strategy := s.request.Spec.Strategy; strategy != nil && strategy.MinStartedSeconds > 0 {
		up := time.Duration(strategy.MinStartedSeconds) * time.Second
		if rest := min(current.StartedAt.Add(up).Sub(s.now), up); rest > 0 {
			s.revisit = s.now.Add(rest)
			s.wait(fmt.Sprintf("the new container is ready; waiting until it has been up for %s", up))
			return
		}
	}
	s.state.Phase = v1beta1.ContainerRecreateRequestSucceeded
	s.state.Message = ""
}

// record records the instance to replace. Nothing may be done to the instance before.
func (s *subject) record() { s.state.ContainerID = s.old.String() }

// begin marks a container whose old instance has ended as Recreating. Until then it is Pending, like in OpenKruise.
func (s *subject) begin() {
	s.record()
	s.state.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.state.IsKilled = true
}

func (s *subject) wait(message string) {
	s.state.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.state.Message = podrules.Short(message)
}

// waitForKubelet sets the message of a container that kubelet has to start.
func (s *subject) waitForKubelet(why string, status *corev1.ContainerStatus) {
	s.heldUntil = kubelet.BackoffUntil(status)
	s.wait(why + podrules.WaitingFor(status))
}

func (s *subject) fail(reason, message string) {
	s.failure = reason
	s.state.Phase = v1beta1.ContainerRecreateRequestFailed
	s.state.Message = podrules.Short(message)
}
