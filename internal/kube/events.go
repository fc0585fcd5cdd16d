package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/refit-project/refit/internal/fair"
	"github.com/refit-project/refit/internal/foreign"
)

// eventBuffer is how many Events may wait for the API server. Beyond that, the newest Event of the namespace with the most
// Events is dropped: Events are best effort.
const eventBuffer = 1000

// eventRate per second, after eventBurst, prevents the Events of a hundred concurrent requests from delaying the requests
// themselves.
const (
	eventRate  = 5
	eventBurst = 10
)

// eventsRemembered is how many Events are remembered to detect repetitions. client-go's default of 4096 takes 6 MiB after
// as many Events, on every node.
const eventsRemembered = 256

// maxMessage bounds the message of an Event in bytes, so that with the three bytes of "…" it is within the API server's
// limit for events.k8s.io.
const maxMessage = 1021

// Events sends Kubernetes Events in the order of the calls. As in client-go's correlator, repeated Events become a count
// and floods are dropped. Namespaces take turns, so that one namespace does not delay the Events of others.
type Events struct {
	client    *Client
	source    corev1.EventSource
	logger    *slog.Logger
	correlate *record.EventCorrelator
	pace      *rate.Limiter

	mu      sync.Mutex
	waiting fair.Turns[*corev1.Event] // by namespace
	wake    chan struct{}             // holds one token: something may be waiting
}

// Events returns a sender with component and node as the source. It sends while Run runs.
func (c *Client) Events(component, node string, logger *slog.Logger) *Events {
	return &Events{
		client: c, source: corev1.EventSource{Component: component, Host: node}, logger: logger,
		correlate: newCorrelator(), pace: rate.NewLimiter(eventRate, eventBurst), wake: make(chan struct{}, 1),
	}
}

func newCorrelator() *record.EventCorrelator {
	return record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{LRUCacheSize: eventsRemembered})
}

// Event records an Event about an object. It never blocks.
func (e *Events) Event(about corev1.ObjectReference, eventType, reason, message string) {
	now, message := metav1.Now(), foreign.Shorten(message, maxMessage)
	event := &corev1.Event{
		// Events about cluster-scoped objects are in the namespace default (ValidateEvent of Kubernetes' core API).
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: e.source,
		ReportingController: e.source.Component, ReportingInstance: e.source.Host,
	}
	if dropped := e.add(event); dropped != nil {
		e.logger.Warn("event dropped: too many are waiting for the API server",
			"namespace", dropped.Namespace, "reason", dropped.Reason, "message", dropped.Message)
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// add queues an Event, and returns one that was dropped for lack of room.
func (e *Events) add(event *corev1.Event) (dropped *corev1.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting.Add(event.Namespace, event)
	if e.waiting.Len() > eventBuffer {
		dropped, _ = e.waiting.Drop()
	}
	return dropped
}

// take returns the next Event.
func (e *Events) take() (*corev1.Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting.Take()
}

// Run sends until the context ends.
func (e *Events) Run(ctx context.Context) {
	for ctx.Err() == nil {
		event, ok := e.take()
		if !ok {
			select {
			case <-ctx.Done():
			case <-e.wake:
			}
			continue
		}
		if err := e.send(ctx, event); err != nil && ctx.Err() == nil {
			e.logger.Warn("event not sent", "reason", event.Reason, "message", event.Message, "err", err)
		}
	}
}

func (e *Events) send(ctx context.Context, event *corev1.Event) error {
	result, err := e.correlate.EventCorrelate(event)
	if err != nil {
		return fmt.Errorf("correlate event: %w", err)
	}
	if result.Skip { // dropped by the correlator
		return nil
	}
	if err := e.pace.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stored, err := e.write(ctx, result)
	if err != nil {
		return err
	}
	e.correlate.UpdateState(stored)
	return nil
}

func (e *Events) write(ctx context.Context, result *record.EventCorrelateResult) (*corev1.Event, error) {
	stored := &corev1.Event{}
	event := result.Event
	// An Event that the correlator has combined lacks these fields, and the policy for the daemon's Events would refuse it.
	event.ReportingController, event.ReportingInstance = e.source.Component, e.source.Host
	if event.Count > 1 {
		err := e.client.core.Patch(types.StrategicMergePatchType).Resource("events").Namespace(event.Namespace).
			Name(event.Name).Body(result.Patch).Do(ctx).Into(stored)
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		event.ResourceVersion = "" // the Event with the count has expired
	}
	err := e.client.core.Post().Resource("events").Namespace(event.Namespace).Body(event).Do(ctx).Into(stored)
	return stored, err
}
