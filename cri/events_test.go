package cri_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

// A broken stream is opened again, however it broke, and opens with a relist.
func TestEventsResubscribe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		disturb       func(*fakecri.Runtime) error
		subscriptions int
	}{
		"restart": {
			disturb:       func(r *fakecri.Runtime) error { return r.Restart(200 * time.Millisecond) },
			subscriptions: 2,
		},
		"first answers refused": {
			disturb: func(r *fakecri.Runtime) error {
				r.SetFault("GetContainerEvents", fakecri.Fault{Code: codes.Unavailable, Times: 2})
				return r.Restart(0)
			},
			subscriptions: 4,
		},
		"runtime hangs for a while": {
			disturb: func(r *fakecri.Runtime) error {
				r.SetFault("Version", fakecri.Fault{Hang: true, Times: 1})
				return r.Restart(0)
			},
			subscriptions: 3,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime, id := newRuntime(t)
			events := subscribe(t, newClient(t, runtime.Endpoint(), nil))
			relist := func(e cri.Event) bool { return e.Relist }
			next(t, events, relist)
			if err := tt.disturb(runtime); err != nil {
				t.Fatal(err)
			}
			next(t, events, relist)
			poll.Until(t, "last subscription", func() bool {
				return runtime.Subscribers() == 1 && len(runtime.Calls("GetContainerEvents")) == tt.subscriptions
			})
			runtime.Exit(id, 1)
			e := next(t, events, func(e cri.Event) bool { return e.ContainerID == id })
			if e.Type != cri.EventStopped || e.PodUID != "uid-0" || e.PodName != "web-0" || e.PodNamespace != "shop" || e.At.IsZero() {
				t.Errorf("event = %+v, want the stop of shop/web-0's container", e)
			}
		})
	}
}

// An event the runtime loses does not break the stream.
func TestEventsLost(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	events := subscribe(t, newClient(t, runtime.Endpoint(), nil))
	next(t, events, func(e cri.Event) bool { return e.Relist })
	// The relist can come a moment before the subscription.
	poll.Until(t, "subscription", func() bool { return runtime.Subscribers() == 1 })
	runtime.SetFault("GetContainerEvents", fakecri.Fault{Lose: true, Times: 1})
	runtime.Exit(id, 1) // lost
	client := newClient(t, runtime.Endpoint(), nil)
	if err := client.RemoveContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events, func(e cri.Event) bool { return true }); e.Type != cri.EventDeleted {
		t.Errorf("first event after the lost one = %+v, want the removal", e)
	}
}

func TestEventsUnsupported(t *testing.T) {
	t.Parallel()
	runtime, _ := newRuntime(t)
	runtime.SetFault("GetContainerEvents", fakecri.Fault{Code: codes.Unimplemented, Message: "not implemented"})
	client := newClient(t, runtime.Endpoint(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := client.Events(ctx, func(cri.Event) {}); !errors.Is(err, cri.ErrUnsupported) {
		t.Errorf("Events() = %v, want ErrUnsupported", err)
	}
}

// A runtime that does not respond is retried with back-off and not in a tight loop, and no relist is
// announced that could not succeed.
func TestEventsBackOff(t *testing.T) {
	t.Parallel()
	runtime, _ := newRuntime(t)
	runtime.SetFault("GetContainerEvents", fakecri.Fault{Code: codes.Unavailable})
	runtime.SetFault("Version", fakecri.Fault{Code: codes.Unavailable})
	client := newClient(t, runtime.Endpoint(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := client.Events(ctx, func(e cri.Event) { t.Errorf("event %+v from a runtime that is away", e) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Events() = %v, want the error of its context", err)
	}
	// 100, 200, 400 ms and up to half as much: no more than 4 attempts fit, and no fewer than 2
	// are made on the slowest machine.
	if n := len(runtime.Calls("GetContainerEvents")); n < 2 || n > 4 {
		t.Errorf("%d subscriptions in a second, want 2 to 4", n)
	}
}

func subscribe(t *testing.T, client *cri.Client) <-chan cri.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan cri.Event, 1024), make(chan error)
	go func() {
		ended <- client.Events(ctx, func(e cri.Event) {
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

func next(t *testing.T, events <-chan cri.Event, want func(cri.Event) bool) cri.Event {
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
			t.Fatal("no such event within 30 s")
		}
	}
}
