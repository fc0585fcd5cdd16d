package crr

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/crr/record"
)

type (
	// Request is the wire type, by a shorter name.
	Request = v1beta1.ContainerRecreateRequest
	// Status of a Request.
	Status = v1beta1.ContainerRecreateRequestStatus
)

const (
	// drainPatience is how long the manager may take to make the pod not ready before the request fails.
	drainPatience = time.Minute
)

// Options are the choices of the node's administrator.
type Options struct {
	// RespectBackoff makes requested restarts wait for kubelet's crash back-off unless a request says otherwise.
	RespectBackoff bool
	// SignalsOnly is for a pod without access to its container runtime: processes can be signalled, but no instance can be
	// removed. So kubelet's back-off cannot be skipped, nor a restart policy overridden, and a container is stopped
	// only if its restart policy starts it again however it ends.
	SignalsOnly bool
}

// Plan decides the next step of one request from what was asked and what is on the node now. It is pure: the
// same arguments give the same decision, so a process that died and came back continues exactly where the
// container instances say it was.
//
// The request must be the first in the Queue of its pod.
func Plan(request *Request, observed Observation, options Options, now time.Time) Decision {
	if Completed(request) || request.DeletionTimestamp != nil {
		return Decision{Status: request.Status, Why: "the request has ended"}
	}
	p := &planner{request: request, observed: observed, options: options, now: now, status: *request.Status.DeepCopy()}
	p.accept()
	if outcome, ended := p.ended(); ended {
		return p.complete(outcome)
	}
	p.againAt(p.deadline())
	if p.observed.Unseen != "" {
		p.status.Message, p.why = p.observed.Unseen, p.observed.Unseen
		return p.decide(nil, nil)
	}
	drained, outcome := p.drained()
	if outcome.Reason != "" {
		return p.complete(outcome)
	}
	if !drained {
		return p.decide(nil, nil)
	}
	return p.containers()
}

// planner carries the arguments of Plan and what has been decided so far.
type planner struct {
	request  *Request
	observed Observation
	options  Options
	now      time.Time

	status Status
	held   bool // status.message says until when kubelet's back-off lasts
	again  time.Time
	why    string
}

// accept marks the request as taken.
func (p *planner) accept() {
	p.status.Phase = v1beta1.ContainerRecreateRequestRecreating
	p.status.Message = ""
	reason, message := ReasonAccepted, "refit-daemon has taken the request"
	if p.options.SignalsOnly {
		reason, message = ReasonCarriedOutBySidecar, "refit-sidecar in the pod has taken the request"
	}
	p.setAccepted(metav1.ConditionTrue, reason, message)
	p.layOut()
}

func (p *planner) setAccepted(status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionAccepted, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.request.Generation, LastTransitionTime: metav1.NewTime(p.now),
	})
}

// layOut has a state for every container, in the order of the spec.
func (p *planner) layOut() {
	stored, recorded := p.status.ContainerRecreateStates, record.Instances(p.request)
	p.status.ContainerRecreateStates = make([]v1beta1.ContainerRecreateRequestRecreateState, len(p.request.Spec.Containers))
	for i, container := range p.request.Spec.Containers {
		state := &p.status.ContainerRecreateStates[i]
		state.Name, state.Phase = container.Name, v1beta1.ContainerRecreateRequestPending
		for _, s := range stored {
			if s.Name == container.Name {
				*state = s
			}
		}
		if state.ContainerID == "" {
			state.ContainerID = recorded[container.Name]
		}
	}
}

// ended finds what ends a request whatever its containers do.
func (p *planner) ended() (Outcome, bool) {
	pod := p.observed.Pod
	switch {
	case pod == nil || pod.DeletionTimestamp != nil && !podrules.SidecarTerminated(pod):
		return Outcome{Reason: ReasonPodGone, Message: "pod has gone"}, true
	// Where a container was stopped and not started again, that has ended the pod, and step says so better.
	case PodEnded(pod) && !podrules.SidecarTerminated(pod) && !slices.ContainsFunc(p.status.ContainerRecreateStates, begun):
		return Outcome{Reason: ReasonPodGone, Message: "pod has ended with phase " + string(pod.Status.Phase)}, true
	case len(p.request.Spec.Containers) == 0:
		return Outcome{Reason: ReasonInvalidRequest, Message: "spec.containers is empty"}, true
	}
	return p.deadlineExceeded()
}

func begun(state v1beta1.ContainerRecreateRequestRecreateState) bool {
	return state.ContainerID != ""
}

// drained reports whether the pod has been out of its Services for as long as was asked. Without the readiness
// gate nothing can take it out, so nothing is waited for.
func (p *planner) drained() (bool, Outcome) {
	strategy := p.request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil || !podrules.HasReadinessGate(p.observed.Pod) {
		return true, Outcome{}
	}
	grace := time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second
	condition := meta.FindStatusCondition(p.status.Conditions, v1beta1.ConditionPreRecreateGrace)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		patience := p.patienceEnd()
		if !p.now.Before(patience) {
			return false, Outcome{
				Reason:  ReasonDrainNotAcquired,
				Message: "the manager did not make the pod not ready within 1 minute: is it running?",
			}
		}
		p.againAt(patience)
		p.why = "waiting for the manager to make the pod not ready"
		return false, Outcome{}
	}
	// Clamped, so that clocks that disagree can only cut the wait to nothing or stretch it to what was asked.
	elapsed := p.now.Add(p.observed.ClockOffset).Sub(condition.LastTransitionTime.Time)
	rest := min(max(grace-elapsed, 0), grace)
	if rest == 0 {
		return true, Outcome{}
	}
	p.againAt(p.now.Add(rest))
	p.why = "waiting unreadyGracePeriodSeconds"
	return false, Outcome{}
}

// containers walks the containers in the order of the spec. They are stopped one after another; only an ordered
// request waits for each to be recreated before the next is stopped.
func (p *planner) containers() Decision {
	var stop *Stop
	var start *Start
	ended := 0
	for i, container := range p.request.Spec.Containers {
		state := &p.status.ContainerRecreateStates[i]
		if finished(state.Phase) {
			ended++
			continue
		}
		step := p.step(container, *state)
		*state = step.state
		p.againAt(step.revisit)
		if step.failure != "" && p.failFast() {
			return p.complete(Outcome{Reason: step.failure, Message: fmt.Sprintf("container %s: %s", container.Name, state.Message)})
		}
		if finished(state.Phase) {
			ended++
			continue
		}
		p.why = fmt.Sprintf("container %s: %s", container.Name, state.Message)
		if p.status.Message == "" && !step.heldUntil.IsZero() {
			p.status.Message = fmt.Sprintf("container %s: %s", container.Name, backoffMessage(step.heldUntil))
			p.held = true
		}
		stop, start = step.stop, step.start
		if step.stopping || start != nil || p.ordered() {
			break
		}
	}
	if ended == len(p.request.Spec.Containers) {
		return p.complete(p.verdict())
	}
	return p.decide(stop, start)
}

func (p *planner) failFast() bool {
	return p.request.Spec.Strategy == nil || p.request.Spec.Strategy.FailurePolicy != v1beta1.FailurePolicyIgnore
}

func (p *planner) ordered() bool {
	return p.request.Spec.Strategy != nil && p.request.Spec.Strategy.OrderedRecreate
}

// verdict of a request all of whose containers are finished.
func (p *planner) verdict() Outcome {
	for _, state := range p.status.ContainerRecreateStates {
		if state.Phase == v1beta1.ContainerRecreateRequestFailed {
			return Outcome{Reason: ReasonContainerFailed, Message: fmt.Sprintf("container %s: %s", state.Name, state.Message)}
		}
	}
	return Outcome{}
}

func (p *planner) complete(outcome Outcome) Decision {
	states := slices.Clone(p.status.ContainerRecreateStates)
	// By the API server's clock, with which the manager compares it for ttlSecondsAfterFinished.
	Complete(&p.status, outcome, p.request.Generation, p.now.Add(p.observed.ClockOffset))
	if outcome.Reason == ReasonDeadlineExceeded && (record.Pruned(p.request) || p.observed.DropsIDs) {
		p.status.ContainerRecreateStates = leave(states)
	}
	why := "every container has been recreated"
	if outcome.Reason != "" {
		why = outcome.Message
	}
	return Decision{Status: p.status, Why: why}
}

// leave is what OpenKruise makes of the states of containers at the deadline, and what its clients look for under its
// CRDs: nothing, and one whose stop has not returned has no message.
func leave(states []v1beta1.ContainerRecreateRequestRecreateState) []v1beta1.ContainerRecreateRequestRecreateState {
	for i := range states {
		if states[i].Phase == v1beta1.ContainerRecreateRequestPending {
			states[i].Message = ""
		}
	}
	return states
}

func (p *planner) decide(stop *Stop, start *Start) Decision {
	decision := Decision{Status: p.status, Stop: stop, Start: start, Again: p.again, Why: p.why}
	if until, minor := p.minorUntil(); stop == nil && start == nil && minor {
		decision.Status = p.request.Status
		decision.Again = Earlier(decision.Again, until)
	}
	return decision
}

// againAt asks for another look at t, if that is the earliest.
func (p *planner) againAt(t time.Time) {
	p.again = Earlier(p.again, t)
}
