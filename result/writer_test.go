package result_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("API server is down")

// call is one call of Write.
type call struct {
	Key string
	At  time.Duration // since the beginning of the test
}

// store is a Destination that takes down its calls.
type store struct {
	start time.Time
	takes time.Duration // of each call, unless its context ends before

	mu     sync.Mutex
	calls  []call
	active map[string]int
	most   int // calls at the same time
	err    error
	sent   result.Requests
	during func(key string) // called within Write
}

func newStore() *store {
	return &store{start: time.Now(), active: map[string]int{}, sent: result.Requests{Reads: 1, Writes: 1}}
}

// Write implements result.Destination.
func (s *store) Write(ctx context.Context, key string) (result.Requests, error) {
	s.mu.Lock()
	s.calls = append(s.calls, call{key, time.Since(s.start)})
	s.active[key]++
	total := 0
	for _, n := range s.active {
		total += n
	}
	s.most = max(s.most, total)
	if s.active[key] > 1 {
		s.err = fmt.Errorf("%s is written twice at the same time", key)
	}
	during, takes, sent, err := s.during, s.takes, s.sent, s.err
	s.mu.Unlock()
	if during != nil {
		during(key)
	}
	if takes > 0 {
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[key]--
	return sent, err
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// at lists when a key was written.
func (s *store) at(key string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var times []time.Duration
	for _, c := range s.calls {
		if c.Key == key {
			times = append(times, c.At)
		}
	}
	return times
}

// keys lists what was written.
func (s *store) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for _, c := range s.calls {
		keys = append(keys, c.Key)
	}
	return keys
}

// fault is the error that Write returns now.
func (s *store) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run runs a test with a Writer to a store in virtual time, and stops the Writer.
func run(t *testing.T, config result.Config[string], test func(t *testing.T, w *result.Writer[string], s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		config.Destination = s
		w := result.NewWriter(config)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		test(t, w, s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func want(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("written at %v, want %v", got, want)
	}
}

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

func TestAnUrgentRequestIsNotHeldUpByALazyOne(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Settle: 100 * ms}}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.Request("a")
		time.Sleep(second) // written at 100 ms
		w.RequestAfter("a", 0, 10*second)
		w.RequestAfter("b", 5*second, 0)
		time.Sleep(second)
		want(t, s.at("a"), 100*ms)
		w.Request("a")
		w.Request("b")
		time.Sleep(20 * second)
		want(t, s.at("a"), 100*ms, 2100*ms) // the lazy request went with the urgent one
		want(t, s.at("b"), 2100*ms)
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

func TestFailuresAreRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	pace := result.Pace{FirstRetry: 500 * ms, LastRetry: 4 * second}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err = errDown })
		for range 300 { // what is requested meanwhile does not shorten the pauses
			w.Request("a")
			time.Sleep(100 * ms)
		}
		at := s.at("a")
		pauses := []time.Duration{500 * ms, second, 2 * second, 4 * second, 4 * second, 4 * second}
		if len(at) < len(pauses) {
			t.Fatalf("%d attempts", len(at))
		}
		for i, least := range pauses {
			if pause := at[i+1] - at[i]; pause < least || pause > least*5/4+ms {
				t.Errorf("pause %d is %s, want %s and up to a quarter", i+1, pause, least)
			}
		}
		s.set(func(s *store) { s.err = nil })
		time.Sleep(5 * second)
		n := len(s.at("a"))
		w.Request("a") // a success has ended the pauses
		synctest.Wait()
		if got := len(s.at("a")); got != n+1 {
			t.Errorf("%d attempts, want %d", got, n+1)
		}
		time.Sleep(time.Hour)
		if got := len(s.at("a")); got != n+1 {
			t.Errorf("%d attempts after a success", got-n-1)
		}
	})
}

func TestOneFailingKeyDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{0, 3} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			run(t, result.Config[string]{Workers: workers}, func(t *testing.T, w *result.Writer[string], s *store) {
				s.set(func(s *store) { s.err = errDown })
				w.Request("a")
				synctest.Wait()
				s.set(func(s *store) { s.err = nil })
				w.Request("b")
				synctest.Wait()
				want(t, s.at("b"), 0)
				time.Sleep(2 * second)
				if len(s.at("a")) != 2 {
					t.Errorf("a was written at %v", s.at("a"))
				}
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

func TestAWriteIsEndedByItsTimeout(t *testing.T) {
	t.Parallel()
	pace := result.Pace{Timeout: 3 * second, FirstRetry: second}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = time.Hour })
		w.Request("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Flush(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("Flush: %v after %s", err, time.Since(s.start))
		}
		time.Sleep(2 * second)
		if n := len(s.at("a")); n != 2 { // and it is retried
			t.Errorf("%d attempts", n)
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

func TestEachFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var observed []string
	config := result.Config[string]{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observe: func(key string, sent result.Requests, err error) {
			observed = append(observed, fmt.Sprintln(key, sent.Writes, err))
		},
	}
	run(t, config, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err = errDown })
		w.Request("a")
		time.Sleep(10 * second)
		s.set(func(s *store) { s.err = errors.New("another fault") })
		time.Sleep(10 * second)
		s.set(func(s *store) { s.err = fmt.Errorf("%w: conflict", result.ErrStale) })
		time.Sleep(time.Minute)
		s.set(func(s *store) { s.err = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for fault, times := range map[string]int{"API server is down": 1, "another fault": 1, "conflict": 0} {
			if n := strings.Count(log.String(), fault); n != times {
				t.Errorf("%q is in the log %d times, want %d:\n%s", fault, n, times, &log)
			}
		}
		if len(observed) != len(s.at("a")) || observed[0] != "a 1 "+errDown.Error()+"\n" || observed[len(observed)-1] != "a 1 <nil>\n" {
			t.Errorf("observed %q of %d calls", observed, len(s.at("a")))
		}
	})
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
