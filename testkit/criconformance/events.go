package criconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/identity"
)

func (s *suite) events(t *testing.T) {
	events := s.subscribe(t)
	await(t, events, "first relist", func(e cri.Event) bool { return e.Relist })
	p := s.pod(t)
	id := p.start(t, Obedient, 0)
	of := func(want cri.EventType) func(cri.Event) bool {
		return func(e cri.Event) bool { return e.ContainerID == id && e.Type == want && e.PodUID == p.uid }
	}
	await(t, events, "start", of(cri.EventStarted))
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
	eventually(t, "running container after the restart", func() bool {
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
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for {
		select {
		case e := <-events:
			if want(e) {
				return e
			}
		case <-timer.C:
			t.Fatalf("%s: no event within 30 s", what)
		}
	}
}
