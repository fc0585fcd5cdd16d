// Package deleted keeps ContainerRecreateRequests that were deleted while their containers may still have been stopping.
package deleted

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// Keep is how long a deleted request is kept: longer than most grace periods. After that nothing is known
	// about its stops.
	Keep = 15 * time.Minute
	// maxDeleted limits how many are kept.
	maxDeleted = 1000
)

// Requests keeps requests that were deleted after they had begun to stop containers, because the container runtime
// continues a stop. The zero value is empty. It is lost with the process.
type Requests struct {
	mu       sync.Mutex
	requests []*v1beta1.ContainerRecreateRequest // in the order of their deletion
}

// Note records a request that has just been deleted.
func (d *Requests) Note(request *v1beta1.ContainerRecreateRequest, now time.Time) {
	ended := request.Status.CompletionTime
	if len(request.Status.ContainerRecreateStates) == 0 || ended != nil && now.Sub(ended.Time) > Keep {
		return
	}
	kept := request.DeepCopy()
	if kept.DeletionTimestamp == nil {
		kept.DeletionTimestamp = &metav1.Time{Time: now}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests[max(0, len(d.requests)+1-maxDeleted):], kept)
}

// Of returns the deleted requests of a namespace.
func (d *Requests) Of(namespace string, now time.Time) []*v1beta1.ContainerRecreateRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = slices.DeleteFunc(d.requests, func(r *v1beta1.ContainerRecreateRequest) bool { return now.Sub(r.DeletionTimestamp.Time) > Keep })
	var of []*v1beta1.ContainerRecreateRequest
	for _, request := range d.requests {
		if request.Namespace == namespace {
			of = append(of, request)
		}
	}
	return of
}

// Events passes events of requests on to a handler, and records deleted requests.
type Events struct {
	handler.EventHandler

	Requests *Requests
	Clock    func() time.Time
}

// Delete implements handler.EventHandler.
func (e Events) Delete(ctx context.Context, of event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	if request, ok := of.Object.(*v1beta1.ContainerRecreateRequest); ok {
		e.Requests.Note(request, e.Clock())
	}
	e.EventHandler.Delete(ctx, of, queue)
}
