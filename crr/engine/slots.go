package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/refit-project/refit/internal/identity"
)

// slots limits the actions in progress. A stop takes its slot before its beginning is recorded, so that the grace
// period does not pass while it waits for a slot. A slot that was waited for is kept for the pod until the pod is
// processed again. The pods of one namespace get three quarters of the slots at most: stops may take days.
type slots struct {
	most, share int

	mu      sync.Mutex
	taken   int
	of      map[string]int // by namespace
	waiting []*waiter      // in the order in which they came
	kept    map[identity.Pod]int
}

// waiter waits for a slot.
type waiter struct {
	pod     identity.Pod
	granted chan struct{} // closed when it has got a slot, and is not in the list any more
}

func newSlots(most int) *slots {
	return &slots{most: most, share: most - most/4, of: map[string]int{}, kept: map[identity.Pod]int{}}
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

// wait takes the next free slot, after the pods that have waited for longer. It returns ctx's error if ctx ends first.
func (s *slots) wait(ctx context.Context, pod identity.Pod) error {
	w := &waiter{pod: pod, granted: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.free(pod)
	}
	return ctx.Err()
}

// grant gives the free slots to pods that wait. A pod whose namespace has its share does not hold up others. The caller holds the lock.
func (s *slots) grant() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		got := s.take(w.pod)
		if got {
			close(w.granted)
		}
		return got
	})
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
	s.grant()
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
