package report

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// Spans of a request's trace, which starts at admission. docs/tracing.md describes them.
const (
	SpanRequest = "request"
	SpanPlan    = "plan"
	SpanStop    = "stop"
	SpanWake    = "wake kubelet"
	SpanStart   = "start"
	SpanReady   = "ready"
)

// StartSpan starts a span in the trace that the request names. EndSpan ends it. If the request names no trace, or one
// that is not sampled, nothing is recorded.
func (r *Reporter) StartSpan(ctx context.Context, request *crr.Request, name string, at time.Time, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	carrier := propagation.MapCarrier{"traceparent": request.Annotations[v1beta1.AnnotationTraceparent]}
	attributes = append(attributes, attribute.String("k8s.namespace.name", request.Namespace), attribute.String("k8s.pod.name", request.Spec.PodName),
		attribute.String("k8s.node.name", r.node), attribute.String("refit.request", request.Name))
	return r.tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), name, trace.WithTimestamp(at), trace.WithAttributes(attributes...))
}

// Step starts the span of one step. The returned function ends it.
func (r *Reporter) Step(ctx context.Context, request *crr.Request) (context.Context, func(crr.Decision, error)) {
	ctx, span := r.StartSpan(ctx, request, SpanPlan, time.Now())
	return ctx, func(decision crr.Decision, err error) {
		span.SetAttributes(attribute.String("refit.plan.why", decision.Why))
		EndSpan(span, err)
	}
}

// Stored records the spans that end with a new status: of containers that have just become ready, and of the request.
func (r *Reporter) Stored(ctx context.Context, request *crr.Request, status crr.Status, observed crr.Observation, now time.Time) {
	r.starts(ctx, request, status, observed, now)
	if status.CompletionTime != nil {
		r.request(ctx, request, status, now)
	}
}

// EndSpan ends a span, as failed if err is not nil.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// starts records spans of the starts of containers that have just become ready: one from the end of the stop to the
// start of the instance, as the runtime reports it, and one from there until it was ready for as long as the request
// requires.
func (r *Reporter) starts(ctx context.Context, request *crr.Request, status crr.Status, observed crr.Observation, now time.Time) {
	for _, state := range status.ContainerRecreateStates {
		before, _ := crr.RecreateStateOf(request, state.Name)
		instances := observed.Instances[state.Name]
		if state.Phase != v1beta1.ContainerRecreateRequestSucceeded || before.Phase == state.Phase || len(instances) == 0 {
			continue
		}
		container := attribute.String("k8s.container.name", state.Name)
		started := instances[0].StartedAt
		if stopped := observed.Actions[state.Name].Done; instances[0].State == identity.StateRunning && !stopped.IsZero() && stopped.Before(started) {
			_, span := r.StartSpan(ctx, request, SpanStart, stopped, container)
			span.End(trace.WithTimestamp(started))
		}
		_, span := r.StartSpan(ctx, request, SpanReady, started, container)
		span.End(trace.WithTimestamp(now))
	}
}

// request records a span for a whole request that has ended.
func (r *Reporter) request(ctx context.Context, request *crr.Request, status crr.Status, now time.Time) {
	result, reason := crr.Result(status)
	created := request.CreationTimestamp.Add(-r.clockOffset())
	_, span := r.StartSpan(ctx, request, SpanRequest, created, attribute.String("refit.result", result), attribute.String("refit.reason", reason))
	if result != "succeeded" {
		span.SetStatus(codes.Error, status.Message)
	}
	span.End(trace.WithTimestamp(now))
}
