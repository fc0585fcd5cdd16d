package turns

import (
	"context"
	"sync"
	"time"
)

// Owner is the pod for which a command runs.
type Owner struct {
	Namespace, Pod string
}

// Queue grants turns. It has no goroutine; while probes wait for the budget, a timer grants the next turn.
type Queue struct {
	mu      sync.Mutex
	limit   limit
	budget  budget
	timer   *time.Timer // until the budget allows the next command; nil: nobody waits for it
	running int
	waiting int
	grants  uint64 // number of grants so far
	spaces  map[string]*namespace
	pods    int // in all namespaces
}

// namespace and pod hold the owners with probes, waiting or not.
type namespace struct {
	share
	pods map[string]*pod
}

type pod struct {
	share
	probes int
	queue  []*waiter
}

// share is what an owner has been granted.
type share struct {
	running int
	granted uint64 // number of its last grant
}

// before reports whether a comes before b.
func (a share) before(b share) bool {
	if a.running != b.running {
		return a.running < b.running
	}
	return a.granted < b.granted
}

type waiter struct {
	granted chan struct{} // closed when the turn is granted
}

// New returns a Queue for a node with this number of CPUs, of which commands may use the given share on average.
func New(cpus int, share float64) *Queue {
	return &Queue{limit: newLimit(cpus), budget: newBudget(share * float64(max(cpus, 1))), spaces: map[string]*namespace{}}
}

// Join adds a probe of an owner. An owner must join before it calls Take.
func (q *Queue) Join(o Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.spaces[o.Namespace]
	if n == nil {
		n = &namespace{pods: map[string]*pod{}}
		q.spaces[o.Namespace] = n
	}
	if n.pods[o.Pod] == nil {
		n.pods[o.Pod] = &pod{}
		q.pods++
	}
	n.pods[o.Pod].probes++
}

// Leave removes a probe of an owner. A turn that it holds may end later.
func (q *Queue) Leave(o Owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n, p := q.find(o); p != nil {
		p.probes--
		q.prune(o, n, p)
	}
}

func (q *Queue) find(o Owner) (*namespace, *pod) {
	n := q.spaces[o.Namespace]
	if n == nil {
		return nil, nil
	}
	return n, n.pods[o.Pod]
}

// prune removes an owner without probes and turns.
func (q *Queue) prune(o Owner, n *namespace, p *pod) {
	if p.probes > 0 || p.running > 0 || len(p.queue) > 0 {
		return
	}
	delete(n.pods, o.Pod)
	q.pods--
	if len(n.pods) == 0 {
		delete(q.spaces, o.Namespace)
	}
}

// Take waits for a turn. Its error is the error of ctx.
func (q *Queue) Take(ctx context.Context, o Owner) (*Turn, error) {
	w := &waiter{granted: make(chan struct{})}
	q.mu.Lock()
	_, p := q.find(o)
	if p == nil { // it has left meanwhile
		q.mu.Unlock()
		return nil, context.Canceled
	}
	p.queue = append(p.queue, w)
	q.waiting++
	q.grant()
	q.mu.Unlock()
	select {
	case <-w.granted:
		return &Turn{queue: q, owner: o}, nil
	case <-ctx.Done():
		q.giveUp(o, w)
		return nil, ctx.Err()
	}
}

// giveUp removes a waiter from the queue, or ends its turn if it has just been granted.
func (q *Queue) giveUp(o Owner, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, p := q.find(o)
	for i, other := range p.queue { // a waiting probe keeps the entry of its pod
		if other == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			q.waiting--
			q.prune(o, n, p)
			q.stopTimer()
			return
		}
	}
	q.release(o)
}

// release ends a turn. The caller holds mu.
func (q *Queue) release(o Owner) {
	n, p := q.find(o)
	n.running--
	p.running--
	q.running--
	q.prune(o, n, p)
	q.grant()
}

// grant grants turns to waiters as long as there are turns and the budget allows it. The caller holds mu.
func (q *Queue) grant() {
	defer q.stopTimer()
	for q.waiting > 0 && q.running < q.limit.value {
		now := time.Now()
		if wait := q.budget.wait(now); wait > 0 {
			q.grantAfter(wait)
			return
		}
		n, p := q.next()
		if p == nil {
			return
		}
		q.budget.spend(now)
		close(p.queue[0].granted)
		p.queue = p.queue[1:]
		q.waiting--
		q.running++
		q.grants++
		n.running++
		p.running++
		n.granted, p.granted = q.grants, q.grants
	}
}

// grantAfter grants turns again after some time. The caller holds mu.
func (q *Queue) grantAfter(wait time.Duration) {
	if q.timer != nil {
		return
	}
	q.timer = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timer = nil
		q.grant()
	})
}

// stopTimer stops the timer if nobody waits. The caller holds mu.
func (q *Queue) stopTimer() {
	if q.timer != nil && q.waiting == 0 {
		q.timer.Stop()
		q.timer = nil
	}
}

// next returns the pod whose turn it is: the one with the fewest turns at present, and among these the one that was
// served the longest ago, in the namespace chosen by the same rule. The last turn is not granted to a namespace or pod
// that has all the others, unless no other one waits: commands that do not end would otherwise block everybody.
func (q *Queue) next() (*namespace, *pod) {
	var space *namespace
	var chosen *pod
	for _, n := range q.spaces {
		if len(q.spaces) > 1 && n.running >= q.limit.value-1 || space != nil && !n.before(space.share) {
			continue
		}
		var first *pod
		for _, p := range n.pods {
			if len(p.queue) == 0 || q.pods > 1 && p.running >= q.limit.value-1 || first != nil && !p.before(first.share) {
				continue
			}
			first = p
		}
		if first != nil {
			space, chosen = n, first
		}
	}
	return space, chosen
}

// Load is the state of a Queue.
type Load struct {
	Limit, Running, Waiting int
}

// Load returns how many commands may run, how many run, and how many wait.
func (q *Queue) Load() Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Load{Limit: q.limit.value, Running: q.running, Waiting: q.waiting}
}

// observe records how long a command took, compared with its shortest run. Took is 0 if it did not end in time.
func (q *Queue) observe(shortest, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ratio := 0.0
	if took > 0 {
		ratio = float64(shortest) / float64(took)
	}
	q.budget.observe(shortest)
	q.limit.observe(ratio, q.waiting > 0)
	q.grant()
}

// Turn is the right to run one command.
type Turn struct {
	queue *Queue
	owner Owner
	once  sync.Once
}

// End ends the turn. It may be called more than once.
func (t *Turn) End() {
	t.once.Do(func() {
		t.queue.mu.Lock()
		defer t.queue.mu.Unlock()
		t.queue.release(t.owner)
	})
}
