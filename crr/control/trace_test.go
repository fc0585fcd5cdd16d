package control

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// admit sends a request through the webhook, and returns what was recorded and which traceparent was added.
func admit(t *testing.T, object string) (span sdktrace.ReadOnlySpan, traceparent string, response admission.Response) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	a := newAdmissionHandler(t, testPod(), testNode())
	a.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	response = a.Handle(t.Context(), review(admissionv1.Create, object, ""))
	if spans := recorder.Ended(); len(spans) == 1 {
		span = spans[0]
	}
	for _, patch := range response.Patches {
		if strings.HasSuffix(patch.Path, "/refit.dev~1traceparent") {
			traceparent, _ = patch.Value.(string)
		}
	}
	return span, traceparent, response
}

func TestTraceBeginsAtAdmission(t *testing.T) {
	t.Parallel()
	span, traceparent, response := admit(t, userJSON)
	if span == nil {
		t.Fatal("no span")
	}
	for _, patch := range response.Patches {
		if patch.Operation == "remove" {
			t.Errorf("removed: %s", patch.Path)
		}
	}
	if want := "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"; traceparent != want {
		t.Errorf("traceparent %q, want %q", traceparent, want)
	}
}

func TestTraceOfTheRequesterIsContinued(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	span, traceparent, _ := admit(t, strings.Replace(userJSON, `"annotations":{`, `"annotations":{"refit.dev/traceparent":"00-`+trace+`-b7ad6b7169203331-01",`, 1))
	if span == nil || span.SpanContext().TraceID().String() != trace || !strings.HasPrefix(traceparent, "00-"+trace+"-"+span.SpanContext().SpanID().String()) {
		t.Errorf("span %+v, traceparent %q", span, traceparent)
	}
}

func TestRefusalIsInTheTrace(t *testing.T) {
	t.Parallel()
	span, _, response := admit(t, strings.Replace(userJSON, `"name":"app"`, `"name":"other"`, 1))
	if response.Allowed || span == nil || span.Status().Code != codes.Error {
		t.Errorf("allowed %t, span %+v", response.Allowed, span)
	}
}
