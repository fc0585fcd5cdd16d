package ownpod

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

const (
	// eventBuffer is how many Events may wait. More are dropped: Events are best effort.
	eventBuffer = 50
	// A pod may have eventBurst Events at once and one in eventPeriod after that, as with client-go's spam filter.
	eventBurst  = 25
	eventPeriod = 30 * time.Second

	eventTimeout = 5 * time.Second

	// maxMessage bounds the message of an Event in bytes, so that with the three bytes of "…" it is within the API server's
	// limit for events.k8s.io.
	maxMessage = 1021
)

// Events sends Kubernetes Events in the order of the calls.
type Events struct {
	client    *Client
	component string
	logger    *slog.Logger
	limit     *rate.Limiter
	waiting   chan *corev1.Event
}

// NewEvents returns a sender with component as the source. It sends while Run runs.
func NewEvents(client *Client, component string, logger *slog.Logger) *Events {
	return &Events{
		client: client, component: component, logger: logger,
		limit: rate.NewLimiter(rate.Every(eventPeriod), eventBurst), waiting: make(chan *corev1.Event, eventBuffer),
	}
}

// Event records an Event about an object. It never blocks.
func (e *Events) Event(about corev1.ObjectReference, eventType, reason, message string) {
	now, message := metav1.Now(), foreign.Shorten(message, maxMessage)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: e.component},
		ReportingController: e.component, ReportingInstance: about.Name,
	}
	if e.limit.Allow() {
		select {
		case e.waiting <- event:
			return
		default:
		}
	}
	e.logger.Warn("event dropped: too many", "reason", reason, "message", message)
}

// Run sends until the context ends, and then sends what is still waiting.
func (e *Events) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			for {
				select {
				case event := <-e.waiting:
					e.send(last, event)
				default:
					return
				}
			}
		case event := <-e.waiting:
			e.send(context.WithoutCancel(ctx), event) // the end of ctx must not interrupt it
		}
	}
}

func (e *Events) send(ctx context.Context, event *corev1.Event) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	body, err := json.Marshal(event)
	if err == nil {
		_, err = e.client.Create(ctx, Reference{Version: "v1", Resource: "events", Namespace: event.Namespace}, body)
	}
	if err != nil {
		e.logger.Warn("event not sent", "reason", event.Reason, "message", event.Message, "err", err)
	}
}
