package requests

import (
	"context"
	"sync"

	"github.com/refit-project/refit/identity"
)

// slots bound the acts under way. A stop takes its slot before its beginning is recorded, so that the grace period of what
// waits for one does not pass; a slot that was waited for is kept for the pod until it is looked at again.
type slots struct {
	free chan struct{}

	mu   sync.Mutex
	kept map[identity.Pod]int
}

func newSlots(most int) *slots {
	return &slots{free: make(chan struct{}, most), kept: map[identity.Pod]int{}}
}

// try takes a slot that is kept for the pod, or a free one.
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

// wait takes a slot as soon as one is free. It returns ctx's error if that ends before.
func (s *slots) wait(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) release() { <-s.free }

// keep keeps a slot that has been taken for the next look at the pod.
func (s *slots) keep(key identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key]++
}

// releaseKept releases what the look at the pod has not used.
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
