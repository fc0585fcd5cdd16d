package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/refit-project/refit/cri"
)

const (
	// relistInterval covers lost events of the runtime, of which there should be none.
	relistInterval = 30 * time.Second
	// relistIntervalWithoutEvents replaces the events of a runtime that has none.
	relistIntervalWithoutEvents = 500 * time.Millisecond
)

// eventSource subscribes to the runtime's container events; *cri.Client has it.
type eventSource interface {
	Events(ctx context.Context, fn func(cri.Event)) error
}

// containerEvents passes the runtime's container events to its subscribers, and events with Relist set at intervals.
type containerEvents struct {
	source eventSource
	logger *slog.Logger

	mu          sync.RWMutex
	subscribers []func(cri.Event)
}

func newContainerEvents(source eventSource, logger *slog.Logger) *containerEvents {
	return &containerEvents{source: source, logger: logger}
}

// subscribe has fn called with every event from now on, beginning with a relist. fn must return soon; it may be called
// concurrently.
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
		fn(event)
	}
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
