// Package sight notes when objects of a watch arrived, and waits for what is expected of them.
package sight

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sighting is an object as the watch brought it, and when. Gone is set when it was deleted.
type Sighting[T client.Object] struct {
	At     time.Time
	Object T
	Gone   bool
}

// Sights keeps the latest of each object of a watch and wakes those who wait for something about one. All times
// of the benchmark are times of arrival here, on the one monotonic clock of this process.
type Sights[T client.Object] struct {
	mu      sync.Mutex
	latest  map[string]Sighting[T]
	waiting map[string][]expectation[T]
}

type expectation[T client.Object] struct {
	holds func(Sighting[T]) bool
	seen  chan Sighting[T]
}

// New returns Sights of no object.
func New[T client.Object]() *Sights[T] {
	return &Sights[T]{latest: map[string]Sighting[T]{}, waiting: map[string][]expectation[T]{}}
}

// Follow reads the watch until it ends, which is an error unless ctx has ended.
func (s *Sights[T]) Follow(ctx context.Context, events watch.Interface) error {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			at := time.Now()
			object, ok := event.Object.(T)
			if !open || !ok {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("watch ended: %s %v", event.Type, event.Object)
			}
			s.arrived(Sighting[T]{At: at, Object: object, Gone: event.Type == watch.Deleted})
		}
	}
}

func (s *Sights[T]) arrived(seen Sighting[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := seen.Object.GetName()
	s.latest[name] = seen
	var still []expectation[T]
	for _, e := range s.waiting[name] {
		if e.holds(seen) {
			e.seen <- seen
			continue
		}
		still = append(still, e)
	}
	s.waiting[name] = still
}

// Expect returns a channel that gets the first Sighting of the object, from the latest one on, that holds.
func (s *Sights[T]) Expect(name string, holds func(Sighting[T]) bool) <-chan Sighting[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := expectation[T]{holds: holds, seen: make(chan Sighting[T], 1)}
	if latest, ok := s.latest[name]; ok && holds(latest) {
		e.seen <- latest
		return e.seen
	}
	s.waiting[name] = append(s.waiting[name], e)
	return e.seen
}

// Await receives what was expected.
func Await[T any](ctx context.Context, what string, seen <-chan T) (T, error) {
	select {
	case it := <-seen:
		return it, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	}
}
