package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// eventBuffer is how many Events may wait for the API server; what comes beyond is dropped, since an Event is
// news and not a record.
const eventBuffer = 1000

// eventRate per second, after eventBurst, keeps the Events of a hundred requests at once from taking the API server
// away from the requests themselves: news may wait.
const (
	eventRate  = 5
	eventBurst = 10
)

// eventsRemembered is how many Events are known when one is repeated. client-go's default of 4096 takes 6 MiB after as many
// Events, on every node.
const eventsRemembered = 256

// Events sends Kubernetes Events in the order they were told, repeated ones as a count, floods cut off, as
// client-go's correlator does it.
type Events struct {
	client    *Client
	source    corev1.EventSource
	logger    *slog.Logger
	waiting   chan *corev1.Event
	correlate *record.EventCorrelator
	pace      *rate.Limiter
}

// Events makes a sender that signs as component on node. It sends while Run runs.
func (c *Client) Events(component, node string, logger *slog.Logger) *Events {
	return &Events{
		client: c, source: corev1.EventSource{Component: component, Host: node}, logger: logger,
		waiting: make(chan *corev1.Event, eventBuffer), correlate: newCorrelator(),
		pace: rate.NewLimiter(eventRate, eventBurst),
	}
}

func newCorrelator() *record.EventCorrelator {
	return record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{LRUCacheSize: eventsRemembered})
}

// Event records something that happened to an object. It never blocks.
func (e *Events) Event(about corev1.ObjectReference, eventType, reason, message string) {
	now := metav1.Now()
	event := &corev1.Event{
		// Events of what is in no namespace are kept in default (ValidateEvent of Kubernetes' core API).
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: e.source,
		ReportingController: e.source.Component, ReportingInstance: e.source.Host,
	}
	select {
	case e.waiting <- event:
	default:
		e.logger.Warn("event dropped: too many are waiting for the API server", "reason", reason, "message", message)
	}
}

// Run sends until the context ends.
func (e *Events) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.waiting:
			if err := e.pace.Wait(ctx); err != nil {
				return
			}
			if err := e.send(ctx, event); err != nil && ctx.Err() == nil {
				e.logger.Warn("event not sent", "reason", event.Reason, "message", event.Message, "err", err)
			}
		}
	}
}

func (e *Events) send(ctx context.Context, event *corev1.Event) error {
	result, err := e.correlate.EventCorrelate(event)
	if err != nil {
		return fmt.Errorf("correlate event: %w", err)
	}
	if result.Skip {
		return nil
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
	// An Event that the correlator combines from similar ones lacks them, and the policy of the daemon's Events refuses it then.
	event.ReportingController, event.ReportingInstance = e.source.Component, e.source.Host
	if event.Count > 1 {
		err := e.client.core.Patch(types.StrategicMergePatchType).Resource("events").Namespace(event.Namespace).
			Name(event.Name).Body(result.Patch).Do(ctx).Into(stored)
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		event.ResourceVersion = "" // the counted one has expired
	}
	err := e.client.core.Post().Resource("events").Namespace(event.Namespace).Body(event).Do(ctx).Into(stored)
	return stored, err
}
