// Package control has the queue of the controllers whose objects are in namespaces: the namespaces take turns, so that many
// objects of one namespace do not delay the objects of another. It does not know what is reconciled.
package control

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/internal/fair"
)

// Queue returns the queue of a controller, for controller.Options.NewQueue. Objects without a namespace share one turn.
func Queue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return newQueue(name, limiter, 0)
}

// Limited returns a constructor like Queue, with at most as many objects of one namespace reconciled at a time, for controllers whose
// objects a tenant creates. With more workers than that, an object of another namespace does not wait for one of them.
func Limited(most int) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return newQueue(name, limiter, most)
	}
}

// Share is how many objects of one namespace are reconciled at a time by a number of workers: a quarter. Each waits for writes, and the
// API server takes longer for all when more of them wait: 1,000 objects of one tenant would slow down the operations of others.
func Share(workers int) int { return max(1, workers/4) }

func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], most int) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t := &turns{most: most, running: map[string]int{}}
	queue := limited{workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: t}), t}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})
}

// limited is a work queue that reports the end of a reconciliation to its turns.
type limited struct {
	workqueue.TypedInterface[reconcile.Request]

	turns *turns
}

// Done implements workqueue.TypedInterface. It wakes no other worker: the caller takes the next object itself.
func (l limited) Done(item reconcile.Request) {
	l.turns.ended(item.Namespace)
	l.TypedInterface.Done(item)
}

// turns is a workqueue.Queue. The work queue calls Push, Pop and Len under its own lock.
type turns struct {
	of   fair.Turns[reconcile.Request]
	most int // objects of one namespace at a time; 0 means no limit

	mu      sync.Mutex
	running map[string]int // by namespace
}

// Touch implements workqueue.Queue: an object that is added again keeps its place.
func (t *turns) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (t *turns) Push(item reconcile.Request) { t.of.Add(item.Namespace, item) }

// Len implements workqueue.Queue. It does not count the objects of namespaces that have to wait.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of.LenOf(t.may)
}

// Pop implements workqueue.Queue. It is only called if there are items.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, _ := t.of.TakeOf(t.may)
	t.running[item.Namespace]++
	return item
}

// may reports whether another object of a namespace may be reconciled. The caller holds mu.
func (t *turns) may(namespace string) bool { return t.most == 0 || t.running[namespace] < t.most }

func (t *turns) ended(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[namespace]--; t.running[namespace] <= 0 {
		delete(t.running, namespace)
	}
}
