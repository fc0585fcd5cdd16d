package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

// tally counts.
type tally struct {
	out *json.Encoder

	mu      sync.Mutex
	current traffic.Interval
	total   traffic.Interval
}

func newTally(out *json.Encoder) *tally {
	return &tally{out: out, current: empty(), total: empty()}
}

func empty() traffic.Interval { return traffic.Interval{Answers: map[string]int{}} }

// add counts a request that was answered, or one that failed.
func (t *tally) add(answer string, failure *traffic.Failure, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, to := range []*traffic.Interval{&t.current, &t.total} {
		to.Slowest = max(to.Slowest, milliseconds(took))
		if failure == nil {
			to.Answers[answer]++
			continue
		}
		to.Failed++
		to.Error = failure.Error
		if failure.Refused {
			to.Refused++
		}
	}
	if failure != nil && len(t.current.Failures) < traffic.MaxFailures {
		failure.Milliseconds = milliseconds(took)
		t.current.Failures = append(t.current.Failures, *failure)
	}
}

func (t *tally) connected(kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, to := range []*traffic.Interval{&t.current, &t.total} {
		if kept {
			to.Kept++
		} else {
			to.Opened++
		}
	}
}

// print writes the intervals until ctx ends.
func (t *tally) print(ctx context.Context) {
	ticker := time.NewTicker(traffic.Length)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.mu.Lock()
			ended := t.current
			t.current = empty()
			t.mu.Unlock()
			ended.Time = now
			t.write(&ended)
		}
	}
}

// end writes what has been counted in all.
func (t *tally) end() traffic.Interval {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total.Time, t.total.Total = time.Now(), true
	t.write(&t.total)
	return t.total
}

func (t *tally) write(i *traffic.Interval) {
	if err := t.out.Encode(i); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
	}
}
