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

// MayAct is an error when nothing may be done for a request any more. It is for acts that were decided a while ago: the
// request is as it is now, nil if it is gone or not active any more. clockOffset is the API server's clock minus ours.
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

// deadline is on our clock; zero when there is none.
func (p *planner) deadline() time.Time { return Deadline(p.request, p.observed.ClockOffset) }

// Deadline is when a request ends whatever its containers do, by our clock; zero when it has none. clockOffset is the API
// server's clock minus ours.
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
