package engine

import (
	"context"
	"sync"

	"github.com/refit-project/refit/internal/identity"
)

// slots limits the actions in progress. A stop takes its slot before its beginning is recorded, so that the grace
// period does not pass while it waits for a slot. A slot that was waited for is kept for the pod until the pod is
// processed again.
type slots struct {
	free chan struct{}

	mu   sync.Mutex
	kept map[identity.Pod]int
}

func newSlots(most int) *slots {
	return &slots{free: make(chan struct{}, most), kept: map[identity.Pod]int{}}
}

// try takes a slot that was kept for the pod, or a free one. It reports whether it got one.
func (s *slots) try(key identity.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[key] > 0 {
		s.drop(key)
		return true
	}
	select {
	case s.free <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait takes the next free slot. It returns ctx's error if ctx ends first.
func (s *slots) wait(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) release() { <-s.free }

// keep keeps a taken slot for the next processing of the pod.
func (s *slots) keep(key identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key]++
}

// releaseKept releases a kept slot that the processing of the pod has not used.
func (s *slots) releaseKept(key identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.kept[key] > 0 {
		s.drop(key)
		s.release()
	}
}

func (s *slots) drop(key identity.Pod) {
	if s.kept[key]--; s.kept[key] == 0 {
		delete(s.kept, key)
	}
}
