package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting is an object as the watch brought it, and when. gone is set when it was deleted.
type sighting[T client.Object] struct {
	at     time.Time
	object T
	gone   bool
}

// sights keeps the latest of each object of a watch and wakes those who wait for something about one. All times
// of the benchmark are those of arrival here, on the one monotonic clock of this process.
type sights[T client.Object] struct {
	mu      sync.Mutex
	latest  map[string]sighting[T]
	waiting map[string][]expectation[T]
}

type expectation[T client.Object] struct {
	holds func(sighting[T]) bool
	seen  chan sighting[T]
}

func newSights[T client.Object]() *sights[T] {
	return &sights[T]{latest: map[string]sighting[T]{}, waiting: map[string][]expectation[T]{}}
}

// follow reads the watch until it ends, which is an error unless ctx has ended.
func (s *sights[T]) follow(ctx context.Context, events watch.Interface) error {
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
			s.arrived(sighting[T]{at: at, object: object, gone: event.Type == watch.Deleted})
		}
	}
}

func (s *sights[T]) arrived(seen sighting[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := seen.object.GetName()
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

// expect returns a channel that gets the first sighting of the object, from the latest one on, that holds.
func (s *sights[T]) expect(name string, holds func(sighting[T]) bool) <-chan sighting[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := expectation[T]{holds: holds, seen: make(chan sighting[T], 1)}
	if latest, ok := s.latest[name]; ok && holds(latest) {
		e.seen <- latest
		return e.seen
	}
	s.waiting[name] = append(s.waiting[name], e)
	return e.seen
}

// await receives what was expected.
func await[T any](ctx context.Context, what string, seen <-chan T) (T, error) {
	select {
	case it := <-seen:
		return it, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	}
}
