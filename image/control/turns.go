package control

import (
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/refit-project/refit/internal/fair"
)

// turns is a queue in which namespaces take turns: hundreds of jobs of one namespace, which are enqueued whenever a
// NodeImage changes, must not delay the jobs of another one. It implements workqueue.Queue, whose methods are called
// with a lock held.
type turns struct {
	fair.Turns[ctrl.Request]
}

// newTurns returns such a queue. It has the signature of controller.Options.NewQueue.
func newTurns(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: &turns{}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Name: name, DelayingQueue: delaying})
}

// Touch implements workqueue.Queue. A waiting request keeps its place.
func (t *turns) Touch(ctrl.Request) {}

// Push implements workqueue.Queue.
func (t *turns) Push(request ctrl.Request) { t.Add(request.Namespace, request) }

// Pop implements workqueue.Queue, which only calls it if the queue is not empty.
func (t *turns) Pop() ctrl.Request {
	next, _ := t.Take()
	return next
}
