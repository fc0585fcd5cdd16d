package report_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/identity"
)

// stopped, started and ready are moments of one restart.
var (
	stopped = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	started = stopped.Add(2 * time.Second)
	ready   = stopped.Add(5 * time.Second)
)

func traced(offset time.Duration) (*report.Reporter, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	return report.New(report.Config{
		Node: "node-1", Events: &recorder{}, Registry: prometheus.NewRegistry(), Tracer: tracer, ClockOffset: func() time.Duration { return offset },
	}), spans
}

// span is what a user sees of one.
type span struct {
	Name, Container string
	From, For       time.Duration // since the stop ended
}

func spansOf(recorder *tracetest.SpanRecorder) []span {
	var spans []span
	for _, ended := range recorder.Ended() {
		s := span{Name: ended.Name(), From: ended.StartTime().Sub(stopped), For: ended.EndTime().Sub(ended.StartTime())}
		for _, a := range ended.Attributes() {
			if a.Key == "k8s.container.name" {
				s.Container = a.Value.AsString()
			}
		}
		spans = append(spans, s)
	}
	return spans
}

func TestSpansOfAContainerThatHasBecomeReady(t *testing.T) {
	t.Parallel()
	const succeeded, recreating = v1beta1.ContainerRecreateRequestSucceeded, v1beta1.ContainerRecreateRequestRecreating
	running := []crr.Instance{{State: identity.StateRunning, StartedAt: started}}
	readySpan := span{Name: report.SpanReady, Container: "app", From: 2 * time.Second, For: 3 * time.Second}
	for name, tt := range map[string]struct {
		before, after v1beta1.ContainerRecreateRequestPhase
		instances     []crr.Instance
		stopped       time.Time
		want          []span
	}{
		"it was stopped and is ready": {recreating, succeeded, running, stopped,
			[]span{{Name: report.SpanStart, Container: "app", For: 2 * time.Second}, readySpan}},
		"another daemon has stopped it":      {recreating, succeeded, running, time.Time{}, []span{readySpan}},
		"it started before its stop ended":   {recreating, succeeded, running, started.Add(1), []span{readySpan}},
		"it started as its stop ended":       {recreating, succeeded, running, started, []span{readySpan}},
		"it has ended again":                 {recreating, succeeded, []crr.Instance{{State: identity.StateExited, StartedAt: started}}, stopped, []span{readySpan}},
		"it is not ready yet":                {recreating, recreating, running, stopped, nil},
		"that was told before":               {succeeded, succeeded, running, stopped, nil},
		"its instance was not seen":          {recreating, succeeded, nil, stopped, nil},
		"it was never stopped, and is ready": {"", succeeded, running, time.Time{}, []span{readySpan}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, recorder := traced(0)
			states := func(phase v1beta1.ContainerRecreateRequestPhase) crr.Status {
				return crr.Status{ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: phase}}}
			}
			before := request(nil)
			before.Status = states(tt.before)
			r.Stored(t.Context(), before, states(tt.after), crr.Observation{
				Instances: map[string][]crr.Instance{"app": tt.instances}, Actions: map[string]crr.ActionState{"app": {Done: tt.stopped}},
			}, ready)
			if diff := cmp.Diff(tt.want, spansOf(recorder)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpanOfARequest(t *testing.T) {
	t.Parallel()
	failed, succeeded := crr.Status{}, crr.Status{}
	crr.Complete(&failed, crr.Outcome{Reason: crr.ReasonPodGone, Message: "the pod is gone"}, 1, ready)
	crr.Complete(&succeeded, crr.Outcome{}, 1, ready)
	for name, tt := range map[string]struct {
		status crr.Status
		code   codes.Code
		text   string
		result string
	}{
		"failed":    {failed, codes.Error, "the pod is gone", "failed"},
		"succeeded": {succeeded, codes.Unset, "", "succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, recorder := traced(time.Hour) // the API server's clock is an hour ahead of ours
			of := request(nil)
			of.CreationTimestamp = metav1.NewTime(stopped.Add(time.Hour))
			r.Stored(t.Context(), of, tt.status, crr.Observation{}, ready)
			if diff := cmp.Diff([]span{{Name: report.SpanRequest, For: 5 * time.Second}}, spansOf(recorder)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			ended := recorder.Ended()[0]
			if got := ended.Status(); got.Code != tt.code || got.Description != tt.text {
				t.Errorf("status %+v", got)
			}
			want := map[attribute.Key]string{
				"refit.result": tt.result, "k8s.namespace.name": "shop", "k8s.pod.name": "web", "k8s.node.name": "node-1", "refit.request": "again",
			}
			for _, a := range ended.Attributes() {
				if text, ok := want[a.Key]; ok && a.Value.AsString() == text {
					delete(want, a.Key)
				}
			}
			if len(want) > 0 {
				t.Errorf("lacks the attributes %v: %v", want, ended.Attributes())
			}
		})
	}
}

func TestSpanOfAFailedActSaysWhy(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("shim says no")} {
		r, recorder := traced(0)
		_, s := r.StartSpan(context.Background(), request(nil), report.SpanStop, stopped)
		report.EndSpan(s, err)
		ended := recorder.Ended()
		if len(ended) != 1 || (ended[0].Status().Code == codes.Error) != (err != nil) || err != nil && ended[0].Status().Description != err.Error() {
			t.Errorf("error %v: %+v", err, ended)
		}
	}
}
