package crr

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Queue orders the unfinished requests of one pod: the first is to be carried out, the others wait for it.
// A request that has been begun stays first; otherwise the order is that of creation. Ended and deleted
// requests are left out, so that they never hold up the next one.
func Queue(requests []*v1beta1.ContainerRecreateRequest) []*v1beta1.ContainerRecreateRequest {
	var open []*v1beta1.ContainerRecreateRequest
	for _, request := range requests {
		if request.DeletionTimestamp == nil && !Completed(request) {
			open = append(open, request)
		}
	}
	slices.SortFunc(open, func(a, b *v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(weight(a), weight(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			admittedAt(a).Compare(admittedAt(b)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return open
}

// Wait decides about a request that is not first in the queue of its pod: it stays Pending until its turn or its
// deadline. clockOffset is the API server's clock minus ours.
func Wait(request, behind *Request, options Options, clockOffset time.Duration, now time.Time) Decision {
	p := &planner{request: request, observed: Observation{ClockOffset: clockOffset}, now: now, status: *request.Status.DeepCopy()}
	deadline := p.deadline()
	if outcome, exceeded := p.deadlineExceeded(); exceeded {
		p.layOut()
		return p.complete(outcome)
	}
	p.status.Phase = v1beta1.ContainerRecreateRequestPending
	p.status.Message = "waiting for ContainerRecreateRequest " + behind.Name + " of the same pod"
	if options.SignalsOnly { // no daemon is needed for it
		p.setAccepted(metav1.ConditionFalse, ReasonCarriedOutBySidecar, "refit-sidecar in the pod will take the request")
	}
	return Decision{Status: p.status, Again: deadline, Why: p.status.Message}
}

func weight(request *v1beta1.ContainerRecreateRequest) int {
	if request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
		return 0
	}
	return 1
}

// admittedAt is the zero time when the annotation is missing or malformed: such requests come first within
// their second, in the order of their names.
func admittedAt(request *v1beta1.ContainerRecreateRequest) time.Time {
	at, err := time.Parse(time.RFC3339Nano, request.Annotations[v1beta1.AnnotationAdmittedAt])
	if err != nil {
		return time.Time{}
	}
	return at
}
