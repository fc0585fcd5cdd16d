package report_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
)

// world is a Writer, and an API server with the SidecarSet logs.
type world struct {
	*testing.T
	api    client.Client
	writer *report.Writer
	fault  error // of the next write
	writes int
	events *events.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, events: events.NewFakeRecorder(100)}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "uid", Generation: 1}}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithStatusSubresource(set).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			w.writes++
			if fault := w.fault; fault != nil {
				w.fault = nil
				return fault
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
	}).Build()
	w.writer = &report.Writer{Client: w.api, Recorder: w.events, Clock: func() time.Time { return time.Unix(1e9, 0) }, Pods: report.NewPods(), Written: func(_, doing string, err error) error {
		if doing != "write status of SidecarSet logs" {
			t.Errorf("%q is being done", doing)
		}
		return err
	}}
	return w
}

func (w *world) set() *v1beta1.SidecarSet {
	w.Helper()
	set := &v1beta1.SidecarSet{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: "logs"}, set); err != nil {
		w.Fatal(err)
	}
	return set
}

var observed = status.Observed{Revision: "logs-1", NotInjected: 8, Counts: rollout.Counts{
	Matched: 1, Updated: 2, Ready: 3, UpdatedReady: 4, InFlight: 5, Failed: 6, NotUpgradable: 7, Aborted: 9, FailedUpdated: 10,
}}

func TestEachStateOfPodsIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.writer.Write(t.Context(), w.set(), &observed, &report.Last{}); err != nil {
		t.Fatal(err)
	}
	states := []string{"matched", "updated", "ready", "updated_ready", "in_flight", "failed", "not_upgradable", "not_injected"}
	for i, state := range states {
		if got := testutil.ToFloat64(w.writer.Pods.WithLabelValues("logs", state)); got != float64(i)+1 {
			t.Errorf("%g pods are %s", got, state)
		}
	}
	w.writer.Pods.WithLabelValues("other", "matched").Set(1)
	if w.writer.Forget("logs"); testutil.CollectAndCount(w.writer.Pods) != 1 {
		t.Errorf("%d metrics are left", testutil.CollectAndCount(w.writer.Pods))
	}
}

// What could not be written is not told, and is tried again.
func TestAStatusThatCouldNotBeWrittenIsNotTold(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "sidecarsets"}
	for name, tt := range map[string]struct {
		fault error
		told  bool
	}{
		"conflict":   {apierrors.NewConflict(resource, "logs", errors.New("changed")), true},
		"it is gone": {apierrors.NewNotFound(resource, "logs"), false},
	} {
		w := newWorld(t)
		var last report.Last
		w.fault = tt.fault
		if _, err := w.writer.Write(t.Context(), w.set(), &observed, &last); (err != nil) != tt.told || len(w.events.Events) != 0 {
			t.Errorf("%s: %v, %d Events", name, err, len(w.events.Events))
		}
		last = last.Inherit()
		if _, err := w.writer.Write(t.Context(), w.set(), &observed, &last); err != nil || w.writes != 2 || len(w.events.Events) == 0 || w.set().Status.LatestRevision != "logs-1" {
			t.Errorf("%s: afterwards %v, %d writes, %d Events", name, err, w.writes, len(w.events.Events))
		}
	}
}

// The counters of a moment ago are as good; a new version of the SidecarSet is told at once.
func TestCountersWaitAndANewVersionDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var last report.Last
	write := func(o status.Observed) time.Time {
		t.Helper()
		again, err := w.writer.Write(t.Context(), w.set(), &o, &last)
		if err != nil {
			t.Fatal(err)
		}
		return again.Time
	}
	write(observed)
	next := observed
	next.Counts.Ready = 2
	if again := write(next); w.writes != 1 || !again.After(w.writer.Clock()) || again.After(w.writer.Clock().Add(time.Minute)) {
		t.Errorf("%d writes, again at %s", w.writes, again)
	}
	last = last.Inherit()
	if write(next); w.writes != 2 || w.set().Status.ReadyPods != 2 {
		t.Errorf("%d writes, %d pods are ready", w.writes, w.set().Status.ReadyPods)
	}
	if write(next); w.writes != 2 {
		t.Errorf("%d writes although nothing has changed", w.writes)
	}
}

func TestAMessageOfAnEventIsBounded(t *testing.T) {
	t.Parallel()
	if got := report.Short(errors.New(strings.Repeat("x", 5000))); len(got) > 810 || len(got) < 700 {
		t.Errorf("%d bytes", len(got))
	}
	if got := report.Short(errors.New("short")); got != "short" {
		t.Errorf("%q", got)
	}
}
