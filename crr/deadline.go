package crr

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
)

func (p *planner) deadlineExceeded() (Outcome, bool) {
	if deadline := p.deadline(); deadline.IsZero() || p.now.Before(deadline) {
		return Outcome{}, false
	}
	return Outcome{Reason: ReasonDeadlineExceeded, Message: "recreating has exceeded the activeDeadlineSeconds"}, true
}

// MayAct returns an error if nothing may be done for a request any more. Callers use it before an action that was
// decided earlier. request is the present version of the request, nil if it is gone or no longer active. clockOffset is
// the API server's clock minus the local clock.
func MayAct(request *Request, clockOffset time.Duration, now time.Time) error {
	if request == nil {
		return errors.New("the request has been deleted or is not active any more")
	}
	if request.DeletionTimestamp != nil || Completed(request) {
		return errors.New("the request has ended or is being deleted")
	}
	p := &planner{request: request, observed: Observation{ClockOffset: clockOffset}, now: now}
	if outcome, exceeded := p.deadlineExceeded(); exceeded {
		return errors.New(outcome.Message)
	}
	return nil
}

// deadline returns the request's deadline by the local clock, or zero if there is none.
func (p *planner) deadline() time.Time { return Deadline(p.request, p.observed.ClockOffset) }

// Deadline returns when the request ends regardless of the state of its containers, by the local clock, or zero if it
// has no deadline. clockOffset is the API server's clock minus the local clock.
func Deadline(request *Request, clockOffset time.Duration) time.Time {
	if request.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	limit := time.Duration(*request.Spec.ActiveDeadlineSeconds) * time.Second
	return request.CreationTimestamp.Add(limit).Add(-clockOffset)
}

func (p *planner) patienceEnd() time.Time {
	if accepted := meta.FindStatusCondition(p.request.Status.Conditions, v1beta1.ConditionAccepted); accepted != nil {
		return accepted.LastTransitionTime.Add(drainPatience)
	}
	if !p.observed.TakenAt.IsZero() {
		return p.observed.TakenAt.Add(drainPatience)
	}
	return p.now.Add(drainPatience)
}
