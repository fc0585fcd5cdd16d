package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/test/kit/fakecri"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	admissionID = "b7ad6b7169203331"
)

// traced makes the worker and its connection to the runtime record spans of traces that have begun elsewhere.
func traced(t *testing.T, recorder *tracetest.SpanRecorder) func(*node) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())), sdktrace.WithSpanProcessor(recorder))
	return func(n *node) {
		client, err := cri.New(cri.Config{Endpoint: n.runtime.Endpoint(), Stats: otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		n.client, n.tracer = client, provider.Tracer("test")
	}
}

func traceparent(flags string) func(*crr.Request) {
	return func(r *crr.Request) {
		r.Annotations = map[string]string{v1beta1.AnnotationTraceparent: "00-" + traceID + "-" + admissionID + "-" + flags}
	}
}

func TestRequestIsOneTrace(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	n := newNode(t, traced(t, recorder))
	// The stop has ended for the daemon before kubelet starts the next instance, also on a busy machine.
	n.runtime.ActAsKubelet(fakecri.Kubelet{Delay: func(int) time.Duration { return time.Second }, OnStart: n.started})
	n.request("again", n.pod("web", app()), traceparent("01"), "app")
	if got := n.ends("again"); got != succeeded {
		t.Fatalf("ended as %s", got)
	}
	n.stop()
	byName := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		byName[span.Name()] = span
		if span.SpanContext().TraceID().String() != traceID {
			t.Errorf("span %s is of the trace %s", span.Name(), span.SpanContext().TraceID())
		}
		if span.EndTime().Before(span.StartTime()) {
			t.Errorf("span %s ends before it begins", span.Name())
		}
	}
	for _, name := range []string{report.SpanRequest, report.SpanPlan, report.SpanStop, report.SpanStart, report.SpanReady} {
		span, ok := byName[name]
		if !ok {
			t.Fatalf("no span %s", name)
		}
		if span.Parent().SpanID().String() != admissionID {
			t.Errorf("the parent of span %s is %s, want the admission", name, span.Parent().SpanID())
		}
	}
	stop, start, ready := byName[report.SpanStop], byName[report.SpanStart], byName[report.SpanReady]
	if start.StartTime().Before(stop.StartTime()) || ready.StartTime().Before(start.StartTime()) {
		t.Errorf("stop begins at %s, start at %s, ready at %s", stop.StartTime(), start.StartTime(), ready.StartTime())
	}
	call, ok := byName["runtime.v1.RuntimeService/StopContainer"]
	if !ok || call.Parent().SpanID() != stop.SpanContext().SpanID() {
		t.Errorf("the call of the runtime is not in the span of the stop: %+v", call)
	}
	if !slices.Contains(stop.Attributes(), attribute.String("k8s.container.name", "app")) {
		t.Errorf("attributes of the stop: %v", stop.Attributes())
	}
}

func TestRequestWithoutSampledTraceRecordsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*crr.Request){
		"no annotation": nil, "not sampled": traceparent("00"),
		"malformed": func(r *crr.Request) {
			r.Annotations = map[string]string{v1beta1.AnnotationTraceparent: strings.Repeat("00-", 1000)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := tracetest.NewSpanRecorder()
			n := newNode(t, traced(t, recorder))
			n.request("again", n.pod("web", app()), change, "app")
			if got := n.ends("again"); got != succeeded {
				t.Fatalf("ended as %s", got)
			}
			n.stop()
			if spans := recorder.Ended(); len(spans) > 0 {
				t.Errorf("recorded %d spans", len(spans))
			}
		})
	}
}

func TestFailureIsInTheTrace(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	n := newNode(t, traced(t, recorder))
	n.runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Internal, Message: "shim says no", Times: 1})
	n.request("again", n.pod("web", app()), traceparent("01"), "app")
	if got := n.ends("again"); got != succeeded {
		t.Fatalf("ended as %s", got)
	}
	n.stop()
	var stops []otelcodes.Code
	for _, span := range recorder.Ended() {
		if span.Name() == report.SpanStop {
			stops = append(stops, span.Status().Code)
		}
	}
	if len(stops) != 2 || stops[0] != otelcodes.Error || stops[1] != otelcodes.Unset {
		t.Errorf("stops with the status %v, want an error and a success", stops)
	}
}
