// Package report tells users what happens to the requests of a node, by Kubernetes Events, metrics, and spans of the
// request's trace.
//
// Names and texts of reports belong here. When something is reported, and what else happens then, does not. Log lines
// are written by the caller; the attributes that name the requester are made here.
package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
)

// EventRecorder records Kubernetes Events; *kube.Events implements it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

// Config configures a Reporter. Every field is required.
type Config struct {
	Node     string
	Events   EventRecorder
	Registry prometheus.Registerer
	Tracer   trace.Tracer
	// ClockOffset returns the API server's clock minus the local clock.
	ClockOffset func() time.Duration
}

// Reporter reports the requests of one node.
type Reporter struct {
	node        string
	events      EventRecorder
	metrics     *metrics
	tracer      trace.Tracer
	clockOffset func() time.Duration
}

// New returns a Reporter and registers its metrics.
func New(config Config) *Reporter {
	return &Reporter{
		node: config.Node, events: config.Events, metrics: newMetrics(config.Registry), tracer: config.Tracer, clockOffset: config.ClockOffset,
	}
}

// Ended sends the Event of a request that has ended with this status, and counts the request. took is its duration by
// the API server's clock.
func (r *Reporter) Ended(request *crr.Request, status crr.Status, took time.Duration) {
	result, reason := crr.Result(status)
	r.metrics.completed.WithLabelValues(result, reason).Inc()
	r.metrics.steps.WithLabelValues(stepTotal).Observe(took.Seconds())
	r.record(ended(request, status))
}

// Stopped records how long the stop of a container took, including its preStop hook.
func (r *Reporter) Stopped(took time.Duration) {
	r.metrics.steps.WithLabelValues(stepStop).Observe(took.Seconds())
}

// Touched counts a touch that made kubelet sync a pod.
func (r *Reporter) Touched() { r.metrics.touches.Inc() }

// Acting counts an action as in progress until the returned function is called.
func (r *Reporter) Acting() (ended func()) {
	r.metrics.inFlight.Inc()
	return r.metrics.inFlight.Dec
}
