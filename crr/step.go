package crr

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
)

const (
	// relist is what kubelet takes to notice that an instance was removed: its 1 s relist and a margin.
	relist = 1200 * time.Millisecond
	// maxNudges bounds the writes to a pod that kubelet cannot start; each waits twice as long as the last.
	maxNudges = 5
	// eventedNudges without effect show that kubelet does not relist (EventedPLEG): it keeps its back-off.
	eventedNudges = 2
	// maxRetryDelay between failed attempts; the first delay is a second.
	maxRetryDelay = 30 * time.Second
)

// step is what one container contributes to a decision.
type step struct {
	state    v1beta1.ContainerRecreateRequestRecreateState
	stop     *Stop
	start    *Start
	stopping bool // the next container has to wait
	revisit  time.Time
	failure  string // reason, when the container has just failed
	// heldUntil is the end of kubelet's back-off; zero: there is none, or kubelet does not say.
	heldUntil time.Time
}

// subject is one container of the request while its step is worked out.
type subject struct {
	*planner
	step
	spec v1beta1.ContainerRecreateRequestContainer
	act  Act
	old  identity.ContainerID // the instance to be replaced
	// adopted: old is not the instance at admission, and is recorded nowhere yet.
	adopted bool
}

func (p *planner) step(spec v1beta1.ContainerRecreateRequestContainer, state v1beta1.ContainerRecreateRequestRecreateState) step {
	s := &subject{planner: p, step: step{state: state}, spec: spec, act: p.observed.Acts[spec.Name]}
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
		s.state.IsKilled = true
		s.fail(ReasonRestartPolicyForbidsRestart, fmt.Sprintf("the pod has ended with phase %s, so kubelet starts nothing in it", phase))
	case !known:
		s.missing()
	case newest.State == identity.StateExited:
		s.exited(newest)
	case newest.State == identity.StateCreated:
		s.wait("being started")
	case newest.ID == s.old:
		s.running(newest)
	case newest.State == identity.StateUnknown:
		s.wait("state unknown to the runtime")
	default:
		s.replaced(newest)
	}
	return s.step
}

// endedForGood reports whether a sidecar of a pod whose work is done has been stopped and is not started again, which is
// what the request is for.
func (s *subject) endedForGood(last Instance, known bool) bool {
	pod := s.observed.Pod
	if !podrules.SidecarTerminated(pod) || s.act.Running {
		return false
	}
	return !known || PodEnded(pod) || pod.DeletionTimestamp != nil || !kubelet.RestartPolicyOf(pod, s.spec.Name).Restarts(last.ExitCode)
}

// identify fixes the instance to be replaced: the one recorded in the state, else the one at admission. Where
// that one is gone already, a request to restart whatever is there (forceRecreate) means the newest, and so
// does a container that is down: what it needs is a start.
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

// exited: nothing of the container runs, and the runtime still shows the instance that ended last.
func (s *subject) exited(last Instance) {
	policy := kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name)
	replacedOnce := last.ID != s.old
	if s.act.Running { // the stop has not returned yet
		s.record()
		s.stopping = true
		return
	}
	s.begin()
	if !policy.Restarts(last.ExitCode) && (replacedOnce || !s.overrides()) {
		s.fail(ReasonRestartPolicyForbidsRestart, fmt.Sprintf(
			"it exited with code %d and restartPolicy %s does not start it again", last.ExitCode, policy.Policy))
		return
	}
	status := kubelet.StatusOf(s.observed.Pod, s.spec.Name)
	if replacedOnce {
		s.waitForKubelet(fmt.Sprintf("the new container exited with code %d; ", last.ExitCode), status)
		return
	}
	held := delaysRestart(last, last.FinishedAt) || !kubelet.BackoffUntil(status).IsZero()
	if s.overrides() && !policy.Always() || s.skipsBackoff() && held {
		s.remove()
		return
	}
	s.waitForKubelet("stopped; ", status)
}

// remove makes kubelet forget the exited instances; missing follows.
func (s *subject) remove() {
	s.state.Message = "removing the exited instances so that kubelet starts it without back-off"
	if s.act.Err != "" && s.retryLater() {
		return
	}
	s.start = &Start{Container: s.spec.Name, Remove: s.observed.remains(s.spec.Name)}
}

// retryLater reports whether the last attempt failed too recently for another one.
func (s *subject) retryLater() bool {
	s.state.Message = s.act.Err + ": trying again"
	due := s.act.Done.Add(backoff(time.Second, s.act.Failures-1, maxRetryDelay))
	if !s.now.Before(due) {
		return false
	}
	s.revisit = due
	return true
}

// missing: the runtime knows no instance of the container. Kubelet starts it when it notices; if it has seen
// the exit before the removal it has to be woken.
func (s *subject) missing() {
	if s.act.Running {
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
	if s.act.Nudges >= eventedNudges && !until.IsZero() {
		s.state.Message += "; it did not heed the removal of the exited instance, as with the feature gate EventedPLEG"
		return
	}
	if s.act.Nudges >= maxNudges {
		return
	}
	due := s.act.Done.Add(backoff(relist, s.act.Nudges, time.Minute))
	if !s.act.Done.IsZero() && s.now.Before(due) {
		s.revisit = due
		return
	}
	s.start = &Start{Container: s.spec.Name, Nudge: true}
}

// replaced: another instance than the old one runs. It counts once the pod's own status calls it ready and it
// has been up for long enough.
func (s *subject) replaced(current Instance) {
	s.begin()
	status := kubelet.StatusOf(s.observed.Pod, s.spec.Name)
	if policy := kubelet.RestartPolicyOf(s.observed.Pod, s.spec.Name); policy.Final(status) {
		s.fail(ReasonRestartNotReported, fmt.Sprintf("the new container is running, but kubelet had already reported the end of the one before, "+
			"and under restartPolicy %s it never takes that back: the pod will not show the new one", policy.Policy))
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

// record records the instance to be replaced before anything is done to it.
func (s *subject) record() { s.state.ContainerID = s.old.String() }

// begin is for a container whose old instance has ended. Until then the container is Pending, as OpenKruise has it.
func (s *subject) begin() {
	s.record()
	s.state.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.state.IsKilled = true
}

func (s *subject) wait(message string) {
	s.state.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.state.Message = message
}

// waitForKubelet is for a container that kubelet is to start.
func (s *subject) waitForKubelet(why string, status *corev1.ContainerStatus) {
	s.heldUntil = kubelet.BackoffUntil(status)
	s.wait(why + waitingFor(status))
}

func (s *subject) fail(reason, message string) {
	s.failure = reason
	s.state.Phase = v1beta1.ContainerRecreateRequestFailed
	s.state.Message = message
}

// backoff doubles first n times, up to most.
func backoff(first time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
