package report_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
)

// recorder keeps Events as lines.
type recorder struct{ lines []string }

func (r *recorder) Event(about corev1.ObjectReference, eventType, reason, message string) {
	r.lines = append(r.lines, strings.Join([]string{about.Kind, about.Name, about.FieldPath, eventType, reason, message}, "|"))
}

func newReporter() (*report.Reporter, *recorder, *prometheus.Registry) {
	events, registry := &recorder{}, prometheus.NewRegistry()
	return report.New(report.Config{
		Node: "node-1", Events: events, Registry: registry, Tracer: noop.Tracer{}, ClockOffset: func() time.Duration { return 0 },
	}), events, registry
}

func request(annotations map[string]string) *crr.Request {
	r := &crr.Request{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again", UID: "uid-again", Annotations: annotations}}
	r.Spec.PodName = "web"
	return r
}

func TestEventsNameTheContainerTheRequestAndTheRequester(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	by := request(map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "stuck"})
	for name, tc := range map[string]struct {
		report func(*report.Reporter)
		want   []string // parts of the Event
	}{
		"stop": {
			report: func(r *report.Reporter) { r.Killing(request(nil), pod, "app") },
			want:   []string{"Pod|web|spec.containers{app}|Normal|Killing|", "Stopping container app by ContainerRecreateRequest again"},
		},
		"stop for somebody": {
			report: func(r *report.Reporter) { r.Killing(by, pod, "app") },
			want:   []string{"ContainerRecreateRequest again, ", "alice", "stuck"},
		},
		"failed hook": {
			report: func(r *report.Reporter) { r.FailedPreStopHook(pod, "app", errors.New("exit code 1")) },
			want:   []string{"Pod|web|spec.containers{app}|Warning|FailedPreStopHook|", "exit code 1", "stopped nevertheless"},
		},
		"removed instance": {
			report: func(r *report.Reporter) { r.BackoffSkipped(request(nil), "app") },
			want:   []string{"ContainerRecreateRequest|again||Normal|RestartBackoffSkipped|", "container app", v1beta1.AnnotationRestartBackoff + "=respect"},
		},
		"success": {
			report: func(r *report.Reporter) {
				r.Ended(by, crr.Status{ContainerRecreateStates: make([]v1beta1.ContainerRecreateRequestRecreateState, 2)}, time.Second)
			},
			want: []string{"ContainerRecreateRequest|again||Normal|ContainersRecreated|Recreated 2 containers of pod web, ", "alice"},
		},
		"failure": {
			report: func(r *report.Reporter) { r.Ended(by, crr.Status{Message: "pod is gone"}, time.Second) },
			want:   []string{"ContainerRecreateRequest|again||Warning|RecreateFailed|pod is gone, ", "alice"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, events, _ := newReporter()
			tc.report(r)
			if len(events.lines) != 1 {
				t.Fatalf("Events %q, want one", events.lines)
			}
			for _, part := range tc.want {
				if !strings.Contains(events.lines[0], part) {
					t.Errorf("Event %q lacks %q", events.lines[0], part)
				}
			}
		})
	}
}

func TestEndedRequestsAreCountedByResultAndReason(t *testing.T) {
	t.Parallel()
	r, _, registry := newReporter()
	failed := crr.Status{}
	crr.Complete(&failed, crr.Outcome{Reason: crr.ReasonPodGone, Message: "the pod is gone"}, 1, time.Unix(0, 0))
	r.Ended(request(nil), failed, 2*time.Second)
	want := "# HELP refit_crr_completed_total ContainerRecreateRequests ended by this daemon, by result (succeeded, failed) and reason.\n" +
		"# TYPE refit_crr_completed_total counter\nrefit_crr_completed_total{reason=\"PodGone\",result=\"failed\"} 1\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "refit_crr_completed_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if histogram := metric.GetHistogram(); histogram != nil {
				took[metric.GetLabel()[0].GetValue()] += histogram.GetSampleSum()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"total": 2}, took); diff != "" {
		t.Errorf("seconds by step (-want +got):\n%s", diff)
	}
}

func TestActsStopsAndNudgesAreMeasured(t *testing.T) {
	t.Parallel()
	r, _, registry := newReporter()
	ended := r.Acting()
	r.Acting()()
	r.Stopped(1500 * time.Millisecond)
	r.Touched()
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			got[family.GetName()] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	want := map[string]float64{"refit_crr_acts_in_flight": 1, "refit_crr_nudges_total": 1, "refit_crr_step_duration_seconds": 1.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended()
}
