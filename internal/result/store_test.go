package result_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/result"
)

// call is one call of Write.
type call struct {
	Key string
	At  time.Duration // since the beginning of the test
}

// store is a Destination that records its calls.
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
