package turns_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/probe/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node runs commands that share its CPUs.
type node struct {
	queue *turns.Queue
	cpus  int

	mu      sync.Mutex
	running int
	most    int
	done    map[turns.Owner]int
	longest map[turns.Owner]time.Duration // wait
}

func newNode(cpus int, share float64) *node {
	return &node{queue: turns.New(cpus, share), cpus: cpus, done: map[turns.Owner]int{}, longest: map[turns.Owner]time.Duration{}}
}

// probe runs a command that needs so much CPU again and again until ctx ends.
func (n *node) probe(ctx context.Context, o turns.Owner, period, cpu time.Duration) {
	n.queue.Join(o)
	defer n.queue.Leave(o)
	var pace turns.Pace
	for ctx.Err() == nil {
		begin := time.Now()
		turn, err := n.queue.Take(ctx, o)
		if err != nil {
			return
		}
		n.mu.Lock()
		n.longest[o] = max(n.longest[o], time.Since(begin))
		n.running++
		n.most = max(n.most, n.running)
		slowed := max(1, float64(n.running)/float64(n.cpus))
		n.mu.Unlock()
		start := time.Now()
		wait(ctx, time.Duration(float64(cpu)*slowed))
		n.mu.Lock()
		n.running--
		n.done[o]++
		n.mu.Unlock()
		pace.Observe(n.queue, time.Since(start), ctx.Err() == nil)
		turn.End()
		wait(ctx, period-time.Since(begin))
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// during runs a test for some time in a bubble, and ends all that it has started.
func during(t *testing.T, d time.Duration, n **node, cpus int, start func(ctx context.Context, work *sync.WaitGroup)) {
	t.Helper()
	duringShare(t, d, n, cpus, 100, start) // more than there is
}

// duringShare is during where commands may use a share of the CPUs.
func duringShare(t *testing.T, d time.Duration, n **node, cpus int, share float64, start func(ctx context.Context, work *sync.WaitGroup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		*n = newNode(cpus, share)
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var work sync.WaitGroup
		start(ctx, &work)
		work.Wait()
		if load := (*n).queue.Load(); load.Running+load.Waiting > 0 {
			t.Errorf("in the end %+v", load)
		}
	})
}

// A hundred commands a second that need five CPUs, on two: the node runs what it can, and every probe gets its share.
func TestOverloadIsShared(t *testing.T) {
	t.Parallel()
	var n *node
	during(t, 2*time.Minute, &n, 2, func(ctx context.Context, work *sync.WaitGroup) {
		for i := range 20 {
			for range 5 {
				work.Go(func() {
					n.probe(ctx, turns.Owner{Namespace: "games", Pod: fmt.Sprint(i)}, time.Second, 50*time.Millisecond)
				})
			}
		}
	})
	if n.most > 4 {
		t.Errorf("%d commands at the same time on two CPUs", n.most)
	}
	total, least, most := 0, 1<<30, 0
	for _, done := range n.done {
		total, least, most = total+done, min(least, done), max(most, done)
	}
	if total < 4000 || len(n.done) != 20 || most-least > 20 {
		t.Errorf("%d commands of at most 4,800, of %d pods, from %d to %d of each", total, len(n.done), least, most)
	}
}

// One namespace with a hundred times the probes of another delays it by little.
func TestNamespacesHaveEqualTurns(t *testing.T) {
	t.Parallel()
	var n *node
	small := turns.Owner{Namespace: "small", Pod: "a"}
	during(t, time.Minute, &n, 2, func(ctx context.Context, work *sync.WaitGroup) {
		for i := range 100 {
			work.Go(func() {
				n.probe(ctx, turns.Owner{Namespace: "large", Pod: fmt.Sprint(i)}, time.Second, 100*time.Millisecond)
			})
		}
		work.Go(func() { n.probe(ctx, small, time.Second, 50*time.Millisecond) })
	})
	if n.done[small] < 55 || n.longest[small] > 250*time.Millisecond {
		t.Errorf("%d runs in a minute, the longest wait was %s", n.done[small], n.longest[small])
	}
}

// In one namespace the same is true of its pods.
func TestPodsHaveEqualTurns(t *testing.T) {
	t.Parallel()
	var n *node
	modest := turns.Owner{Namespace: "games", Pod: "modest"}
	during(t, time.Minute, &n, 2, func(ctx context.Context, work *sync.WaitGroup) {
		for range 100 {
			work.Go(func() {
				n.probe(ctx, turns.Owner{Namespace: "games", Pod: "greedy"}, time.Second, 100*time.Millisecond)
			})
		}
		work.Go(func() { n.probe(ctx, modest, time.Second, 50*time.Millisecond) })
	})
	if n.done[modest] < 55 || n.longest[modest] > 250*time.Millisecond {
		t.Errorf("%d runs in a minute, the longest wait was %s", n.done[modest], n.longest[modest])
	}
}

// Commands that wait for something else than the CPU do not slow each other down, and get more turns.
func TestTheLimitGrowsWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cpus       int
		least, max int // commands at the same time after a minute
	}{
		"many CPUs": {32, 33, 64},
		"two CPUs":  {2, 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n *node
			during(t, time.Minute, &n, tc.cpus, func(ctx context.Context, work *sync.WaitGroup) {
				for i := range 100 {
					work.Go(func() {
						n.probe(ctx, turns.Owner{Namespace: "a", Pod: fmt.Sprint(i)}, 10*time.Millisecond, 50*time.Millisecond)
					})
				}
			})
			if n.most < tc.least || n.most > tc.max {
				t.Errorf("%d commands at the same time, want %d to %d", n.most, tc.least, tc.max)
			}
		})
	}
}

func TestACommandThatDoesNotEndLeavesATurnToOthers(t *testing.T) {
	t.Parallel()
	for name, hung := range map[string]func(i int) turns.Owner{
		"in another namespace":         func(int) turns.Owner { return turns.Owner{Namespace: "hung", Pod: "x"} },
		"in pods of another namespace": func(i int) turns.Owner { return turns.Owner{Namespace: "hung", Pod: fmt.Sprint(i)} },
		"in another pod":               func(int) turns.Owner { return turns.Owner{Namespace: "games", Pod: "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n *node
			lively := turns.Owner{Namespace: "games", Pod: "a"}
			during(t, time.Minute, &n, 2, func(ctx context.Context, work *sync.WaitGroup) {
				work.Go(func() { n.probe(ctx, lively, time.Second, 50*time.Millisecond) })
				synctest.Wait()
				for i := range 10 {
					work.Go(func() { n.probe(ctx, hung(i), time.Second, time.Hour) })
				}
			})
			if n.done[lively] < 55 {
				t.Errorf("%d runs in a minute beside commands that do not end", n.done[lively])
			}
		})
	}
}

func TestATurnThatIsNotTakenGoesToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := turns.New(1, 100)
		a, b := turns.Owner{Namespace: "n", Pod: "a"}, turns.Owner{Namespace: "n", Pod: "b"}
		q.Join(a)
		if _, err := q.Take(t.Context(), b); !errors.Is(err, context.Canceled) {
			t.Errorf("a turn for who has not joined: %v", err)
		}
		first, err := q.Take(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		second, err := q.Take(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Take(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third of two turns: %v", err)
		}
		first.End()
		first.End() // counts once
		q.Leave(a)  // while it has a turn
		if load := q.Load(); load != (turns.Load{Limit: 2, Running: 1}) {
			t.Errorf("%+v", load)
		}
		second.End()
		if load := q.Load(); load != (turns.Load{Limit: 2}) {
			t.Errorf("%+v", load)
		}
	})
}
