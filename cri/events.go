package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/wait"
)

// EventType is the kind of an event.
type EventType string

// Event types of CRI.
const (
	EventCreated EventType = "Created"
	EventStarted EventType = "Started"
	EventStopped EventType = "Stopped"
	EventDeleted EventType = "Deleted"
)

// Event reports a change of a container or of a pod's sandbox. It is only a hint: events can be lost and repeated, so the
// state has to be read.
type Event struct {
	// Relist is true for the first event of each subscription: anything may have happened before. The other fields are then
	// empty.
	Relist bool

	Type        EventType
	ContainerID string // the sandbox's ID for events of the sandbox
	At          time.Time

	PodUID, PodName, PodNamespace string
}

const (
	methodEvents = "GetContainerEvents"

	minResubscribe = 100 * time.Millisecond
	maxResubscribe = 5 * time.Second
)

// Events subscribes to the runtime's container events and calls fn with one after the other, until ctx ends, and returns
// the error of ctx. If the stream breaks it subscribes again, with back-off, and passes an event with Relist each time,
// because the runtime does not store events. Events may still be lost, so the caller has to list at long intervals too.
//
// The error is ErrUnsupported for runtimes without events (containerd before 1.7, CRI-O by default). containerd 1.7 sends
// each event to one subscriber only, so a kubelet with EventedPLEG receives some of our events, and we receive some of its
// events.
//
// fn must return soon; no event is read while it runs.
func (c *Client) Events(ctx context.Context, fn func(Event)) error {
	backoff := wait.Backoff{First: minResubscribe, Last: maxResubscribe}
	for {
		start := time.Now()
		err := c.subscribe(ctx, fn)
		lived := time.Since(start)
		c.cfg.OnCall(methodEvents, lived, err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnsupported):
			return err
		}
		if lived > maxResubscribe {
			backoff.Reset()
		}
		delay := backoff.Next()
		c.cfg.Logger.Warn("container events interrupted, subscribing again", "err", err, "in", delay)
		if err := wait.For(ctx, delay+rand.N(delay/2)); err != nil { //nolint:gosec // jitter, not a secret
			return err
		}
	}
}

// subscribe reads one stream until it ends, which is always an error.
func (c *Client) subscribe(ctx context.Context, fn func(Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return callError(ctx, methodEvents, "", err)
	}
	// Opening a stream does not wait for the server. A later call on the same connection does, so the subscription exists,
	// or nearly so, when the caller lists.
	if _, err := c.Version(ctx); err != nil {
		return fmt.Errorf("%s: %w", methodEvents, err)
	}
	fn(Event{Relist: true})
	for {
		m, err := stream.Recv()
		if err != nil {
			return streamError(ctx, err)
		}
		fn(eventOf(m))
	}
}

// streamError also handles a stream that the runtime has ended without an error, as it does when it shuts down.
func streamError(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w: the runtime ended the stream", methodEvents, ErrUnavailable)
	}
	return callError(ctx, methodEvents, "", err)
}

func eventOf(m *runtimeapi.ContainerEventResponse) Event {
	pod := m.GetPodSandboxStatus().GetMetadata()
	return Event{
		Type:         eventTypeOf(m.GetContainerEventType()),
		ContainerID:  m.GetContainerId(),
		At:           timeOf(m.GetCreatedAt()),
		PodUID:       pod.GetUid(),
		PodName:      pod.GetName(),
		PodNamespace: pod.GetNamespace(),
	}
}

func eventTypeOf(t runtimeapi.ContainerEventType) EventType {
	switch t {
	case runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT:
		return EventCreated
	case runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT:
		return EventStarted
	case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT:
		return EventStopped
	case runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		return EventDeleted
	default:
		return EventType(t.String())
	}
}
