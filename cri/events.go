package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/wait"
)

// EventType is what happened to a container.
type EventType string

// The event types of CRI.
const (
	EventCreated EventType = "Created"
	EventStarted EventType = "Started"
	EventStopped EventType = "Stopped"
	EventDeleted EventType = "Deleted"
)

// Event says that something happened to a container or to a pod's sandbox. It is a hint where to
// look and never the truth about it: events are lost and repeated.
type Event struct {
	// Relist is true for the event that opens each subscription: anything may have happened
	// before it. The other fields are then empty.
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

// Events subscribes to the runtime's container events and hands them to fn one after the other,
// until ctx ends, whose error it returns. When the stream breaks it subscribes again, with back-off,
// and fn is told to relist each time: events are not kept for the absent. Events may be lost all
// the same, so a slow relist of the caller's own stays necessary.
//
// Runtimes without events (containerd before 1.7, CRI-O unless told otherwise) make it return
// ErrUnsupported. containerd 1.7 gives each event to one subscriber only, so there a kubelet with
// EventedPLEG takes some of ours, and we of its.
//
// fn must return soon; while it runs no event is read.
func (c *Client) Events(ctx context.Context, fn func(Event)) error {
	delay := minResubscribe
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
			delay = minResubscribe
		}
		c.cfg.Logger.Warn("container events interrupted, subscribing again", "err", err, "in", delay)
		if err := wait.For(ctx, delay+rand.N(delay/2)); err != nil { //nolint:gosec // jitter, not a secret
			return err
		}
		delay = min(2*delay, maxResubscribe)
	}
}

// subscribe reads one stream to its end, which is always an error.
func (c *Client) subscribe(ctx context.Context, fn func(Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return callError(ctx, methodEvents, "", err)
	}
	// Opening a stream does not wait for the other side. A call behind it on the same connection
	// does, so the subscription exists, or nearly so, when the caller relists.
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

// streamError also treats a stream the runtime ended in good order, as it does when it shuts down.
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
