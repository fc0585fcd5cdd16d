// Package control has the queue of the controllers whose objects are in namespaces: the namespaces take turns, so that many
// objects of one namespace do not delay the objects of another. It does not know what is reconciled.
package control

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/internal/fair"
)

// Queue returns the queue of a controller, for controller.Options.NewQueue. Objects without a namespace share one turn.
func Queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: &turns{}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}

// turns is a workqueue.Queue. The work queue calls its methods under its own lock.
type turns struct {
	fair.Turns[reconcile.Request]
}

// Touch implements workqueue.Queue: an object that is added again keeps its place.
func (t *turns) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (t *turns) Push(item reconcile.Request) { t.Add(item.Namespace, item) }

// Pop implements workqueue.Queue. It is only called if there are items.
func (t *turns) Pop() reconcile.Request {
	item, _ := t.Take()
	return item
}
