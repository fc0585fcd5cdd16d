package control

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
	// keepDeleted is how long a deleted request is kept: longer than most grace periods. After that nothing is known
	// about its stops.
	keepDeleted = 15 * time.Minute
	// maxDeleted limits how many are kept.
	maxDeleted = 1000
)

// deleted keeps requests that were deleted after they had begun to stop containers, because the container runtime
// continues a stop. The zero value is empty. It is lost with the process.
type deleted struct {
	mu       sync.Mutex
	requests []*v1beta1.ContainerRecreateRequest // in the order of their deletion
}

// note records a request that has just been deleted.
func (d *deleted) note(request *v1beta1.ContainerRecreateRequest, now time.Time) {
	ended := request.Status.CompletionTime
	if len(request.Status.ContainerRecreateStates) == 0 || ended != nil && now.Sub(ended.Time) > keepDeleted {
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

// of returns the deleted requests of a namespace.
func (d *deleted) of(namespace string, now time.Time) []*v1beta1.ContainerRecreateRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = slices.DeleteFunc(d.requests, func(r *v1beta1.ContainerRecreateRequest) bool { return now.Sub(r.DeletionTimestamp.Time) > keepDeleted })
	var of []*v1beta1.ContainerRecreateRequest
	for _, request := range d.requests {
		if request.Namespace == namespace {
			of = append(of, request)
		}
	}
	return of
}

// requestEvents enqueues the rollouts of the namespace, and records deleted requests.
type requestEvents struct {
	handler.EventHandler
	reconciler *reconciler
}

// Delete implements handler.EventHandler.
func (e requestEvents) Delete(ctx context.Context, of event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	if request, ok := of.Object.(*v1beta1.ContainerRecreateRequest); ok {
		e.reconciler.deleted.note(request, e.reconciler.Clock())
	}
	e.EventHandler.Delete(ctx, of, queue)
}
