package control

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
)

const traceparent = "traceparent"

// startTrace starts the trace of a request with its admission, or continues the trace that the requester has set.
func startTrace(ctx context.Context, tracer trace.Tracer, review admission.Request, sent *v1beta1.ContainerRecreateRequest) (context.Context, trace.Span) {
	carrier := propagation.MapCarrier{traceparent: sent.Annotations[v1beta1.AnnotationTraceparent]}
	return tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), "admission", trace.WithAttributes(
		attribute.String("k8s.namespace.name", sent.Namespace), attribute.String("k8s.pod.name", sent.Spec.PodName),
		attribute.String("refit.request", sent.Name), attribute.String("enduser.id", review.UserInfo.Username)))
}

// endTrace ends the admission span and writes the trace context into the admitted request, so that daemons continue the
// trace.
func endTrace(ctx context.Context, span trace.Span, admitted *v1beta1.ContainerRecreateRequest, err error) {
	defer span.End()
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		return
	}
	if !span.IsRecording() {
		return // keep the requester's trace context
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(ctx, span), carrier)
	if admitted.Annotations == nil {
		admitted.Annotations = map[string]string{}
	}
	admitted.Annotations[v1beta1.AnnotationTraceparent] = carrier[traceparent]
}
