package engine

import (
	"context"
	"sync"

	"github.com/refit-project/refit/internal/identity"
)

// slots limits the actions in progress. A stop takes its slot before its beginning is recorded, so that the grace
// period does not pass while it waits for a slot. A slot that was waited for is kept for the pod until the pod is
// processed again. The pods of one namespace get three quarters of the slots at most: stops may take days.
type slots struct {
	most, share int

	mu    sync.Mutex
	taken int
	of    map[string]int // by namespace
	freed chan struct{}  // closed when a slot is released
	kept  map[identity.Pod]int
}

func newSlots(most int) *slots {
	return &slots{most: most, share: most - most/4, of: map[string]int{}, freed: make(chan struct{}), kept: map[identity.Pod]int{}}
}

// try takes a slot that was kept for the pod, or a free one. It reports whether it got one.
func (s *slots) try(pod identity.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[pod] > 0 {
		s.drop(pod)
		return true
	}
	return s.take(pod)
}

// wait takes the next free slot. It returns ctx's error if ctx ends first.
func (s *slots) wait(ctx context.Context, pod identity.Pod) error {
	for {
		s.mu.Lock()
		got, freed := s.take(pod), s.freed
		s.mu.Unlock()
		if got {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take takes a free slot. The caller holds the lock.
func (s *slots) take(pod identity.Pod) bool {
	if s.taken >= s.most || s.of[pod.Namespace] >= s.share {
		return false
	}
	s.taken++
	s.of[pod.Namespace]++
	return true
}

func (s *slots) release(pod identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(pod)
}

// free releases a slot. The caller holds the lock.
func (s *slots) free(pod identity.Pod) {
	s.taken--
	if s.of[pod.Namespace]--; s.of[pod.Namespace] == 0 {
		delete(s.of, pod.Namespace)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// keep keeps a taken slot for the next processing of the pod.
func (s *slots) keep(pod identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[pod]++
}

// releaseKept releases a kept slot that the processing of the pod has not used.
func (s *slots) releaseKept(pod identity.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.kept[pod] > 0 {
		s.drop(pod)
		s.free(pod)
	}
}

func (s *slots) drop(pod identity.Pod) {
	if s.kept[pod]--; s.kept[pod] == 0 {
		delete(s.kept, pod)
	}
}
