package criconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/poll"
)

func (s *suite) events(t *testing.T) {
	events := s.subscribe(t)
	await(t, events, "first relist", func(e cri.Event) bool { return e.Relist })
	p := s.pod(t)
	id := startUntilSeen(t, p, events)
	of := func(want cri.EventType) func(cri.Event) bool {
		return func(e cri.Event) bool { return e.ContainerID == id && e.Type == want && e.PodUID == p.uid }
	}
	s.stop(t, id, 0)
	stopped := await(t, events, "stop", of(cri.EventStopped))
	if age := time.Since(stopped.At); age < 0 || age > time.Minute {
		t.Errorf("event is %s old", age)
	}
	if err := s.client.RemoveContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	await(t, events, "removal", of(cri.EventDeleted))
}

// startUntilSeen starts containers until the event of a start arrives. On a busy machine the runtime may register a
// subscriber only after it has answered the call that follows the subscription, so that the first event is lost; the
// relists of the caller cover that.
func startUntilSeen(t *testing.T, p *pod, events <-chan cri.Event) string {
	t.Helper()
	for attempt := range uint32(10) {
		id := p.start(t, Obedient, attempt)
		if e, ok := within(events, 3*time.Second, func(e cri.Event) bool { return e.ContainerID == id && e.Type == cri.EventStarted }); ok {
			if e.PodUID != p.uid {
				t.Fatalf("event of pod %q, want %q", e.PodUID, p.uid)
			}
			return id
		}
	}
	t.Fatal("no event for ten starts")
	return ""
}

// After a restart of the runtime calls work again and the stream opens with a relist.
func (s *suite) restart(t *testing.T) {
	if s.Restart == nil {
		t.Skip("the fixture cannot restart the runtime")
	}
	id := s.pod(t).start(t, Obedient, 0)
	events := s.subscribe(t)
	await(t, events, "first relist", func(e cri.Event) bool { return e.Relist })

	s.Restart(t)
	await(t, events, "relist after the restart", func(e cri.Event) bool { return e.Relist })
	poll.Until(t, "the container runs after the restart", func() bool {
		got, err := s.client.ContainerStatus(t.Context(), id)
		return err == nil && got.State == identity.StateRunning
	})
	s.stop(t, id, 0)
	await(t, events, "stop after the restart", func(e cri.Event) bool {
		return e.ContainerID == id && e.Type == cri.EventStopped
	})
}

// subscribe reads events until the test ends.
func (s *suite) subscribe(t *testing.T) <-chan cri.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan cri.Event), make(chan error)
	go func() {
		ended <- s.client.Events(ctx, func(e cri.Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Events ended with %v, want context.Canceled", err)
		}
	})
	return events
}

func await(t *testing.T, events <-chan cri.Event, what string, want func(cri.Event) bool) cri.Event {
	t.Helper()
	e, ok := within(events, 30*time.Second, want)
	if !ok {
		t.Fatalf("%s: no event within 30 s", what)
	}
	return e
}

// within waits for an event, for no longer than the limit.
func within(events <-chan cri.Event, limit time.Duration, want func(cri.Event) bool) (cri.Event, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case e := <-events:
			if want(e) {
				return e, true
			}
		case <-timer.C:
			return cri.Event{}, false
		}
	}
}
