package turns_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/refit-project/refit/probe/turns"
)

// crowd are 100 probes of 20 pods, due each second, whose commands take so long alone.
func (n *node) crowd(ctx context.Context, work *sync.WaitGroup, cpu time.Duration) {
	for i := range 20 {
		for range 5 {
			work.Go(func() {
				n.probe(ctx, turns.Owner{Namespace: "games", Pod: fmt.Sprint(i)}, time.Second, cpu)
			})
		}
	}
}

func TestCommandsUseTheirShareOfTheCPUs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		share       float64
		cpu         time.Duration
		least, most int
	}{
		"a quarter of two CPUs": {0.25, 50 * time.Millisecond, 1190, 1290},
		"half of them":          {0.5, 50 * time.Millisecond, 2380, 2540},
		"cheap commands":        {0.25, 10 * time.Millisecond, 5500, 6200},
		"commands that wait":    {0.25, 90 * time.Millisecond, 1150, 1290},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n *node
			duringShare(t, 2*time.Minute, &n, 2, tc.share, func(ctx context.Context, work *sync.WaitGroup) { n.crowd(ctx, work, tc.cpu) })
			total, least, most := 0, 1<<30, 0
			for _, done := range n.done {
				total, least, most = total+done, min(least, done), max(most, done)
			}
			if total < tc.least || total > tc.most || most-least > 20 {
				t.Errorf("%d commands, want %d to %d; from %d to %d of each pod", total, tc.least, tc.most, least, most)
			}
		})
	}
}

// Probes with long periods that are due together run together.
func TestProbesWithinTheShareDoNotWait(t *testing.T) {
	t.Parallel()
	var n *node
	duringShare(t, 2*time.Minute, &n, 2, 0.25, func(ctx context.Context, work *sync.WaitGroup) {
		for i := range 30 {
			work.Go(func() {
				n.probe(ctx, turns.Owner{Namespace: "games", Pod: fmt.Sprint(i)}, 10*time.Second, 20*time.Millisecond)
			})
		}
	})
	for o, longest := range n.longest {
		if longest > time.Second {
			t.Errorf("a probe of pod %s has waited for %s", o.Pod, longest)
		}
	}
}
