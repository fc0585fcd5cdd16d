package result

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Indexes of items outside the queue: they wait for nothing, or for the turn of their share.
const (
	notQueued = -1
	inTurns   = -2
)

// item is the state of one key.
type item[K comparable] struct {
	key       K
	index     int           // in the queue
	due       time.Time     // zero: nothing is requested
	interval  time.Duration // of the request that is due
	running   bool          // Write is being called
	forgotten bool

	requested, attempted uint64        // numbers of the last request, and of the last request that Write was called for
	last                 time.Time     // end of the last call that sent something or failed
	yield                time.Duration // least interval after the last call
	retry                time.Duration
	err                  error // of the last call
}

// plan makes the item due at a time and returns true, unless it is already due earlier.
func (i *item[K]) plan(at time.Time, interval time.Duration) bool {
	if soonest := i.last.Add(max(interval, i.yield, i.retry)); !i.last.IsZero() && at.Before(soonest) {
		at = soonest
	}
	if !i.due.IsZero() && !at.Before(i.due) {
		return false
	}
	i.due, i.interval = at, interval
	return true
}

// end records the result of a call of Write, which took some time, and plans the next one, if any.
func (i *item[K]) end(sent Requests, err error, pace Pace, took time.Duration, now time.Time) {
	i.running, i.err = false, err
	if sent != (Requests{}) || err != nil {
		i.last = now
		if pace.Yield {
			i.yield = min(took, maxYield)
		}
	}
	if err == nil {
		i.retry = 0
	} else {
		i.retry = min(max(2*i.retry, pace.FirstRetry), pace.LastRetry)
	}
	requested, interval := i.due, i.interval
	i.due = time.Time{}
	switch {
	case err != nil:
		i.plan(now.Add(i.retry+rand.N(i.retry/4+1)), pace.Interval) //nolint:gosec // spreads load, keeps no secret
	case !requested.IsZero():
		i.plan(requested, interval)
	}
}

// queue orders items by when they are due (container/heap).
type queue[K comparable] []*item[K]

func (q queue[K]) Len() int           { return len(q) }
func (q queue[K]) Less(a, b int) bool { return q[a].due.Before(q[b].due) }

func (q queue[K]) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].index, q[b].index = a, b
}

// Push implements heap.Interface.
func (q *queue[K]) Push(x any) {
	i := x.(*item[K]) //nolint:forcetypeassert // nothing else is pushed
	i.index = len(*q)
	*q = append(*q, i)
}

// Pop implements heap.Interface.
func (q *queue[K]) Pop() any {
	last := len(*q) - 1
	i := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	i.index = notQueued
	return i
}

// enqueue adds an item to the queue or moves it. An item that is being written is enqueued at the end of the write. mu is
// held.
func (w *Writer[K]) enqueue(i *item[K]) {
	switch {
	case i.due.IsZero(), i.running, i.index == inTurns:
		return
	case i.index == notQueued:
		heap.Push(&w.due, i)
	default:
		heap.Fix(&w.due, i.index)
	}
	if i.index == 0 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// drop removes an item. If it waits for its turn, it is skipped then. mu is held.
func (w *Writer[K]) drop(i *item[K]) {
	if i.index >= 0 {
		heap.Remove(&w.due, i.index)
	}
	delete(w.items, i.key)
}

// begin takes an item that is due, if there is one, and marks it as being written. With final it takes any item that did
// not fail last time.
func (w *Writer[K]) begin(now time.Time, final bool) *item[K] {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.due) > 0 && (final || !w.due[0].due.After(now)) {
		i := heap.Pop(&w.due).(*item[K]) //nolint:forcetypeassert // nothing else is in it
		i.index = inTurns
		w.turns.Add(w.config.Share(i.key), i)
	}
	for {
		i, waits := w.turns.Take()
		if !waits {
			return nil
		}
		i.index = notQueued
		if i.forgotten || final && i.retry > 0 {
			continue
		}
		i.running, i.due = true, time.Time{}
		return i
	}
}
