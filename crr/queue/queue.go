// Package queue orders the requests of one pod.
package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/foreign"
)

// Order orders the unfinished requests of one pod. The first is to be carried out, the others wait for it. A request in
// progress comes first; otherwise requests are ordered by creation. Completed and deleted requests are left out, so
// that they never delay the next one.
func Order(requests []*v1beta1.ContainerRecreateRequest) []*v1beta1.ContainerRecreateRequest {
	var open []*v1beta1.ContainerRecreateRequest
	for _, request := range requests {
		if request.DeletionTimestamp == nil && !crr.Completed(request) {
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

func weight(request *v1beta1.ContainerRecreateRequest) int {
	if request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
		return 0
	}
	return 1
}

// admittedAt returns when the request was admitted, or zero if the annotation is missing or malformed. Requests with
// zero come first among those created in the same second, ordered by name.
func admittedAt(request *v1beta1.ContainerRecreateRequest) time.Time {
	at, err := foreign.Time(request.Annotations[v1beta1.AnnotationAdmittedAt])
	if err != nil {
		return time.Time{}
	}
	return at
}
