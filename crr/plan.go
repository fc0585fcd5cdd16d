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
	"github.com/refit-project/refit/internal/recheck"
)

type (
	// Request is a short name for the API type.
	Request = v1beta1.ContainerRecreateRequest
	// Status is the status of a Request.
	Status = v1beta1.ContainerRecreateRequestStatus
)

const (
	// drainPatience is how long to wait for the manager to make the pod not ready before the request fails.
	drainPatience = time.Minute
)

// Options are settings of the node's administrator.
type Options struct {
	// RespectBackoff makes requested restarts wait for kubelet's crash back-off unless a request says otherwise.
	RespectBackoff bool
	// SignalsOnly is for a pod without access to its container runtime: processes can be signalled, but instances
	// cannot be removed. So kubelet's back-off cannot be skipped, restart policies cannot be overridden, and a
	// container is stopped only if its restart policy restarts it whatever its exit code.
	SignalsOnly bool
}

// Plan decides the next step of one request from the request and the present state of the node. It is a pure function:
// the same arguments give the same decision, so a restarted process continues where the container instances show that
// it was.
//
// The request must be the first one in the queue of its pod.
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
		p.status.Message, p.why = podrules.Short(p.observed.Unseen), p.observed.Unseen
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

// planner holds the arguments of Plan and what has been decided so far.
type planner struct {
	request  *Request
	observed Observation
	options  Options
	now      time.Time

	status Status
	held   bool // status.message names the end of kubelet's back-off
	again  recheck.At
	why    string
}

// accept marks the request as accepted.
func (p *planner) accept() {
	p.status.Phase = v1beta1.ContainerRecreateRequestRecreating
	p.status.Message = ""
	reason, message := ReasonAccepted, "refit-daemon has taken the request"
	if p.options.SignalsOnly {
		reason, message = ReasonCarriedOutBySidecar, "refit-sidecar in the pod has taken the request"
	}
	p.setAccepted(metav1.ConditionTrue, reason, message)
	p.initStates()
}

func (p *planner) setAccepted(status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionAccepted, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.request.Generation, LastTransitionTime: metav1.NewTime(p.now),
	})
}

// initStates gives every container of the spec a state, in spec order.
func (p *planner) initStates() {
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
		recorded.Complete(state)
	}
}

// ended returns the outcome of a request that ends regardless of its containers, and false for others.
func (p *planner) ended() (Outcome, bool) {
	pod := p.observed.Pod
	switch {
	case pod == nil || pod.DeletionTimestamp != nil && !podrules.SidecarTerminated(pod):
		return Outcome{Reason: ReasonPodGone, Message: "pod has gone"}, true
	// If a stopped container was not started again, that has ended the pod, and step gives a better message.
	case PodEnded(pod) && !podrules.SidecarTerminated(pod) && !slices.ContainsFunc(p.status.ContainerRecreateStates, stopRecorded):
		return Outcome{Reason: ReasonPodGone, Message: "pod has ended with phase " + string(pod.Status.Phase)}, true
	case len(p.request.Spec.Containers) == 0:
		return Outcome{Reason: ReasonInvalidRequest, Message: "spec.containers is empty"}, true
	}
	return p.deadlineExceeded()
}

func stopRecorded(state v1beta1.ContainerRecreateRequestRecreateState) bool {
	return state.ContainerID != ""
}

// drained reports whether the pod has been not ready for the requested time. Without the readiness gate the pod cannot
// be made not ready, so there is nothing to wait for.
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
	// Limit the wait, so that clocks that disagree can shorten it to nothing but cannot extend it.
	elapsed := p.now.Add(p.observed.ClockOffset).Sub(condition.LastTransitionTime.Time)
	rest := min(max(grace-elapsed, 0), grace)
	if rest == 0 {
		return true, Outcome{}
	}
	p.againAt(p.now.Add(rest))
	p.why = "waiting unreadyGracePeriodSeconds"
	return false, Outcome{}
}

// containers handles the containers in spec order. They are stopped one after another; only with orderedRecreate each
// one must be recreated before the next is stopped.
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
		if state.Message != "" { // without a message it waits for a container before it
			p.why = fmt.Sprintf("container %s: %s", container.Name, state.Message)
		}
		if p.status.Message == "" && !step.heldUntil.IsZero() {
			p.status.Message = fmt.Sprintf("container %s: %s", container.Name, podrules.BackoffMessage(step.heldUntil))
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

// verdict returns the outcome of a request whose containers are all finished.
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
	// Use the API server's clock, because the manager compares the time with it for ttlSecondsAfterFinished.
	Complete(&p.status, outcome, p.request.Generation, p.now.Add(p.observed.ClockOffset))
	if outcome.Reason == ReasonDeadlineExceeded && (record.Pruned(p.request) || p.observed.DropsIDs) {
		p.status.ContainerRecreateStates = withoutPendingMessages(states)
	}
	why := "every container has been recreated"
	if outcome.Reason != "" {
		why = outcome.Message
	}
	return Decision{Status: p.status, Why: why}
}

// withoutPendingMessages returns the states that OpenKruise's clients expect at the deadline under its CRDs: unchanged,
// but pending containers, whose stop has not returned, have no message.
func withoutPendingMessages(states []v1beta1.ContainerRecreateRequestRecreateState) []v1beta1.ContainerRecreateRequestRecreateState {
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
		decision.Again = decision.Again.Or(until)
	}
	return decision
}

// againAt requests another look at t, unless an earlier one is already requested.
func (p *planner) againAt(t time.Time) {
	p.again = p.again.Or(t)
}
