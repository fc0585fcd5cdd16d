package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/cri"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventsOf is a runtime whose stream ends with an error, or with the context if that is nil.
type eventsOf struct {
	events []cri.Event
	err    error
}

func (e eventsOf) Events(ctx context.Context, fn func(cri.Event)) error {
	for _, event := range e.events {
		fn(event)
	}
	if e.err != nil {
		return e.err
	}
	<-ctx.Done()
	return ctx.Err()
}

// received runs containerEvents for a time and returns what a subscriber received.
func received(t *testing.T, source eventSource, d time.Duration) []cri.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := newContainerEvents(source, nil, slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	var got []cri.Event
	events.subscribe(func(event cri.Event) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, event)
	})
	done := make(chan error, 1)
	go func() { done <- events.run(ctx) }()
	time.Sleep(d)
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return got
}

func TestContainerEventsReachSubscribers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := cri.Event{Type: cri.EventStopped, ContainerID: "a"}
		got := received(t, eventsOf{events: []cri.Event{stopped}}, time.Second)
		if want := []cri.Event{{Relist: true}, stopped}; !slices.Equal(got, want) {
			t.Errorf("received %+v, want a relist at the subscription and then the runtime's events: %+v", got, want)
		}
	})
}

func TestContainersAreListedAtIntervals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source eventSource
		want   int // relists within a minute, beside the first
	}{
		"runtime with events":    {source: eventsOf{}, want: 2},
		"runtime without events": {source: eventsOf{err: cri.ErrUnsupported}, want: 120},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := received(t, tt.source, time.Minute)
				if n := len(got) - 1; n != tt.want {
					t.Errorf("%d relists within a minute, want %d", n, tt.want)
				}
			})
		})
	}
}

// A panic of one subscriber for an event of a pod ended the daemon.
func TestASubscriberThatPanicsKeepsNoEventFromTheOthers(t *testing.T) {
	t.Parallel()
	events := newContainerEvents(eventsOf{}, nil, slog.New(slog.DiscardHandler))
	got := 0
	events.subscribe(func(event cri.Event) {
		if !event.Relist {
			panic("planted")
		}
	})
	events.subscribe(func(cri.Event) { got++ })
	events.publish(cri.Event{PodName: "web", Type: cri.EventStopped})
	if got != 2 { // with the relist of the beginning
		t.Errorf("the other has received %d events", got)
	}
}
