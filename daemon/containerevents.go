package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/guard"
)

const (
	// relistInterval bounds the delay after a lost event of the runtime.
	relistInterval = 30 * time.Second
	// relistIntervalWithoutEvents is the interval for a runtime without events.
	relistIntervalWithoutEvents = 500 * time.Millisecond
)

// eventSource subscribes to the runtime's container events; *cri.Client has it.
type eventSource interface {
	Events(ctx context.Context, fn func(cri.Event)) error
}

// containerEvents passes the runtime's container events to its subscribers, and events with Relist at intervals.
type containerEvents struct {
	source eventSource
	logger *slog.Logger

	guard       *guard.Guard
	mu          sync.RWMutex
	subscribers []func(cri.Event)
}

func newContainerEvents(source eventSource, g *guard.Guard, logger *slog.Logger) *containerEvents {
	return &containerEvents{source: source, guard: g, logger: logger}
}

// subscribe calls fn with every event from now on, first with a relist. fn must return soon. It may be called concurrently.
func (e *containerEvents) subscribe(fn func(cri.Event)) {
	e.mu.Lock()
	e.subscribers = append(e.subscribers, fn)
	e.mu.Unlock()
	fn(cri.Event{Relist: true})
}

func (e *containerEvents) publish(event cri.Event) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, fn := range e.subscribers {
		e.guard.Try("runtime", podOf(&event), func() { fn(event) })
	}
}

// podOf returns the pod of an event as the subject of a fault.
func podOf(event *cri.Event) guard.Subject {
	return guard.Named(guard.Object{Kind: "Pod", Namespace: event.PodNamespace, Name: event.PodName})
}

// run publishes until ctx ends.
func (e *containerEvents) run(ctx context.Context) error {
	ended := make(chan error, 1)
	var source sync.WaitGroup
	defer source.Wait()
	source.Go(func() { ended <- e.source.Events(ctx, e.publish) })
	ticker := time.NewTicker(relistInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.publish(cri.Event{Relist: true})
		case err := <-ended:
			if errors.Is(err, cri.ErrUnsupported) {
				e.logger.Warn("the container runtime has no container events: containers are listed at intervals instead", "interval", relistIntervalWithoutEvents)
				ticker.Reset(relistIntervalWithoutEvents)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
