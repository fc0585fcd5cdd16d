package crr

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/recheck"
)

// Wait decides about a request that is not the first in the queue of its pod: it stays Pending until its turn or its
// deadline. front is the request directly in front of it. clockOffset is the API server's clock minus the local clock.
func Wait(request, front *Request, options Options, clockOffset time.Duration, now time.Time) Decision {
	p := &planner{request: request, observed: Observation{ClockOffset: clockOffset}, now: now, status: *request.Status.DeepCopy()}
	deadline := p.deadline()
	if outcome, exceeded := p.deadlineExceeded(); exceeded {
		p.initStates()
		return p.complete(outcome)
	}
	p.status.Phase = v1beta1.ContainerRecreateRequestPending
	p.status.Message = "waiting for ContainerRecreateRequest " + front.Name + " of the same pod"
	if options.SignalsOnly { // it needs no daemon
		p.setAccepted(metav1.ConditionFalse, ReasonCarriedOutBySidecar, "refit-sidecar in the pod will take the request")
	}
	return Decision{Status: p.status, Again: recheck.On(deadline), Why: p.status.Message}
}
