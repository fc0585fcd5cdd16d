package result_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/internal/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("API server is down")

const (
	ms     = time.Millisecond
	second = time.Second
)

func TestRequestsThatComeTogetherAreOneWrite(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Settle: 100 * ms}}, func(t *testing.T, w *result.Writer[string], s *store) {
		for range 10 {
			w.Request("a")
			w.Request("b")
			time.Sleep(9 * ms)
		}
		time.Sleep(second)
		want(t, s.at("a"), 100*ms)
		want(t, s.at("b"), 100*ms)
	})
}

func TestWritesOfOneKeyAreAnIntervalApart(t *testing.T) {
	t.Parallel()
	pace := result.Pace{Settle: 50 * ms, Interval: 500 * ms}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		for range 150 {
			w.Request("a")
			time.Sleep(10 * ms)
		}
		w.Request("b") // another key does not wait for it
		time.Sleep(2 * second)
		want(t, s.at("a"), 50*ms, 550*ms, 1050*ms, 1550*ms)
		want(t, s.at("b"), 1550*ms)
	})
}

// A write that is slow is followed by the next one an interval after its end.
func TestIntervalCountsFromTheEndOfAWrite(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Interval: 500 * ms}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = 2 * second })
		w.Request("a")
		time.Sleep(second)
		w.Request("a") // while it is being written: what was read may be older than this
		time.Sleep(10 * second)
		want(t, s.at("a"), 0, 2500*ms)
	})
}

func TestALazyRequestIsWrittenInItsTime(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.Request("a")
		time.Sleep(second)
		w.RequestAfter("a", 100*ms, 10*second)
		time.Sleep(time.Minute)
		want(t, s.at("a"), 0, 10*second)
	})
}

func TestACallThatSentNothingDelaysNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sent result.Requests
		want []time.Duration
	}{
		"nothing": {result.Requests{}, []time.Duration{0, second}},
		"a read":  {result.Requests{Reads: 1}, []time.Duration{0, 10 * second}},
		"a write": {result.Requests{Writes: 1}, []time.Duration{0, 10 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, result.Config[string]{Pace: result.Pace{Interval: 10 * second}}, func(t *testing.T, w *result.Writer[string], s *store) {
				s.set(func(s *store) { s.sent = tc.sent })
				w.Request("a")
				time.Sleep(second)
				w.Request("a")
				time.Sleep(time.Minute)
				want(t, s.at("a"), tc.want...)
			})
		})
	}
}

func TestWorkersWriteDifferentKeysAtTheSameTime(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Workers: 4}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = second })
		w.Request("same")
		synctest.Wait()
		for i := range 8 {
			w.Request(fmt.Sprint(i))
			w.Request("same") // while it is being written
		}
		time.Sleep(10 * second)
		s.set(func(s *store) {
			if s.most != 4 {
				t.Errorf("%d calls at the same time, want 4", s.most)
			}
		})
		if err := s.fault(); err != nil {
			t.Error(err)
		}
		if n := len(s.at("same")); n != 2 {
			t.Errorf("%d writes of one key, want 2", n)
		}
		if n := len(s.keys()); n != 10 {
			t.Errorf("%d calls, want 10", n)
		}
	})
}

func TestFlushWaitsForWhatWasRequested(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Interval: 10 * second}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = second })
		w.Request("a")
		time.Sleep(500 * ms)
		w.Request("a") // the write under way may have begun too early for it
		if err := w.Flush(t.Context(), "a", "never requested"); err != nil {
			t.Error(err)
		}
		if got := time.Since(s.start); got != 12*second {
			t.Errorf("flushed after %s", got)
		}
		s.set(func(s *store) { s.err = errDown })
		w.Request("a")
		w.Request("b")
		if err := w.Flush(t.Context(), "b"); !errors.Is(err, errDown) {
			t.Errorf("Flush: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		if err := w.Flush(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush beyond its context: %v", err)
		}
	})
}

func TestAForgottenKeyIsWrittenNoMore(t *testing.T) {
	t.Parallel()
	pace := result.Pace{Settle: second, Resync: time.Minute}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err = errDown })
		w.Forget("unknown")
		w.Request("a")
		w.Request("b")
		w.Forget("a")
		s.set(func(s *store) { s.during = func(key string) { w.Forget(key) } }) // b fails and is forgotten meanwhile
		time.Sleep(time.Hour)
		want(t, s.at("a"))
		want(t, s.at("b"), second)
		if err := w.Flush(t.Context(), "a", "b"); err != nil {
			t.Errorf("Flush of what is forgotten: %v", err)
		}
		s.set(func(s *store) { s.err, s.during = nil, nil })
		w.Request("a") // another object of that name
		time.Sleep(2 * second)
		want(t, s.at("a"), time.Hour+second)
	})
}

func TestAKeyRequestedAgainWhileItIsForgotten(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Workers: 2}, func(t *testing.T, w *result.Writer[string], s *store) {
		once := sync.OnceFunc(func() {
			w.Forget("a")
			w.Request("a")
		})
		s.set(func(s *store) { s.takes, s.during = second, func(string) { once() } })
		w.Request("a")
		time.Sleep(time.Minute)
		want(t, s.at("a"), 0, second)
		if err := s.fault(); err != nil {
			t.Error(err)
		}
	})
}

func TestResyncWritesEveryKnownKey(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Resync: 10 * time.Minute}}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.Request("a")
		w.Request("b")
		time.Sleep(time.Hour)
		for _, key := range []string{"a", "b"} {
			if n := len(s.at(key)); n != 6 {
				t.Errorf("%s was written %d times in an hour", key, n)
			}
		}
	})
}

func TestWhatIsDueIsWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		final time.Duration
		takes time.Duration
		want  []string
	}{
		"in time":    {2 * second, 0, []string{"running", "running", "a", "b"}},
		"not at all": {0, 0, []string{"running"}},
		"too late":   {2 * second, 90 * second, []string{"running", "running"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				w := result.NewWriter(result.Config[string]{Destination: s, Pace: result.Pace{Settle: second, Final: tc.final}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- w.Run(ctx) }()
				s.set(func(s *store) { s.err = errDown })
				w.RequestAfter("failing", 0, 0) // what has failed is not tried again
				synctest.Wait()
				s.set(func(s *store) { s.err, s.takes, s.calls = nil, time.Hour, nil })
				w.RequestAfter("running", 0, 0)
				synctest.Wait()
				w.RequestAfter("a", 10*second, 0)
				w.RequestAfter("b", 20*second, 0)
				s.set(func(s *store) { s.takes = tc.takes })
				cancel() // which interrupts the write under way
				if err := <-done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tc.want, s.keys()); diff != "" {
					t.Errorf("written (-want +got):\n%s", diff)
				}
				if since := time.Since(s.start); since > tc.final+ms {
					t.Errorf("Run ended %s after its context", since)
				}
			})
		})
	}
}

// BenchmarkRequest: what 5,000 keys cost that are requested and written once.
func BenchmarkRequest(b *testing.B) {
	w := result.NewWriter(result.Config[int]{Destination: nowhere{}, Workers: 4})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	keys := make([]int, 5000)
	for i := range keys {
		keys[i] = i
	}
	for b.Loop() {
		for _, key := range keys {
			w.Request(key)
		}
		if err := w.Flush(b.Context(), keys...); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	running.Wait()
}

type nowhere struct{}

// Write implements result.Destination.
func (nowhere) Write(context.Context, int) (result.Requests, error) { return result.Requests{}, nil }
