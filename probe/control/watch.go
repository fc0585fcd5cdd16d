package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/probe/podprobe"
)

func asPod(object client.Object) *corev1.Pod {
	pod, _ := object.(*corev1.Pod)
	return pod
}

// markerChanged ignores updates that only change the status.
func markerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// nodeChanged ignores heartbeats. A new node may have pods if it was deleted and registered again.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return podprobe.VirtualNode(e.ObjectOld.GetLabels()) != podprobe.VirtualNode(e.ObjectNew.GetLabels())
		},
	}
}

// enqueueNames enqueues cluster-scoped objects by name after a delay. An object that is already queued is reconciled
// once. of gets both versions of the changed object: before is nil for a new object, after for a deleted one.
func enqueueNames(delay time.Duration, of func(ctx context.Context, before, after client.Object) []string) handler.EventHandler {
	return enqueue(delay, func(ctx context.Context, before, after client.Object) []ctrl.Request {
		var requests []ctrl.Request
		for _, name := range of(ctx, before, after) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return requests
	})
}

func enqueue(delay time.Duration, of func(ctx context.Context, before, after client.Object) []ctrl.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, before, after client.Object) {
		for _, request := range of(ctx, before, after) {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}
