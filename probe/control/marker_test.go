package control

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

func TestMarkerStatus(t *testing.T) {
	t.Parallel()
	broken := gameMarker("broken")
	broken.Spec.Probes[0].ContainerName = "none"
	w := newAPIServer(t, gameMarker("m"), broken, gamePod("a"), gamePod("b"))
	s := &markerReconciler{api: w.api}
	same(t, "writes", w.settle(s, "shop", "m"), "patch m", "patch status m")
	same(t, "writes", w.settle(s, "shop", "broken"), "patch broken", "patch status broken")
	var m v1alpha1.PodProbeMarker
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "m"}, &m); err != nil {
		t.Fatal(err)
	}
	if m.Status.MatchedPods != 2 || m.Status.Conditions[0].Reason != "Probing" {
		t.Errorf("%+v", m.Status)
	}
	select {
	case text := <-w.events.Events:
		if !strings.Contains(text, "Warning ContainerOrPortNotFound") {
			t.Errorf("event %q", text)
		}
	default:
		t.Error("there is no Event about the marker that does not work")
	}
	if len(w.events.Events) > 0 {
		t.Errorf("one event too many: %q", <-w.events.Events)
	}
}

func TestMarkersShareTheProbeLimitOfAPod(t *testing.T) {
	t.Parallel()
	objects := []client.Object{gamePod("a")}
	for _, name := range []string{"a", "b", "z"} {
		m := gameMarker(name)
		one := m.Spec.Probes[0]
		m.Spec.Probes = nil
		for i := range v1alpha1.MaxProbesOfMarker {
			one.Name, one.PodConditionType = fmt.Sprint("p", i), fmt.Sprintf("example.com/%s%d", name, i)
			m.Spec.Probes = append(m.Spec.Probes, one)
		}
		objects = append(objects, m)
	}
	w := newAPIServer(t, objects...)
	s := &markerReconciler{api: w.api}
	reason := func() string {
		w.settle(s, "shop", "z")
		var z v1alpha1.PodProbeMarker
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "z"}, &z); err != nil {
			t.Fatal(err)
		}
		return z.Status.Conditions[0].Reason
	}
	if got := reason(); got != "TooManyProbes" {
		t.Errorf("reason %s while 300 probes are for one pod", got)
	}
	if got := s.markersBeside(t.Context(), nil, objects[1]); len(got) != 3 {
		t.Errorf("a new marker concerns %v", got)
	}
	w.remove(objects[1])
	if got := s.markersBeside(t.Context(), objects[1], nil); len(got) != 2 {
		t.Errorf("one that goes concerns %v", got)
	}
	if got := reason(); got != "Probing" {
		t.Errorf("reason %s when there is room again", got)
	}
	if got := s.markersBeside(t.Context(), nil, gameMarker("m")); len(got) != 0 {
		t.Errorf("there is room for all, but a new one concerns %v", got)
	}
}

func TestMarkersOfAPod(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, gameMarker("m"), gameMarker("n"))
	s := &markerReconciler{api: w.api}
	relabelled := gamePod("a")
	relabelled.Labels["app"] = "web"
	ready := gamePod("a")
	ready.Status.Conditions[0].Status = "False"
	for name, tc := range map[string]struct {
		before, after client.Object
		want          int
	}{
		"new": {nil, gamePod("a"), 2}, "gone": {gamePod("a"), nil, 2}, "relabelled": {gamePod("a"), relabelled, 2},
		"not ready": {gamePod("a"), ready, 0}, "other": {nil, relabelled, 0},
	} {
		if got := s.markersOfPod(t.Context(), tc.before, tc.after); len(got) != tc.want {
			t.Errorf("%s: %v, want %d", name, got, tc.want)
		}
	}
}

// statusOf is the status of a marker after it was reconciled.
func statusOf(w *apiServer, r *markerReconciler, name string) v1alpha1.PodProbeMarkerStatus {
	w.t.Helper()
	w.settle(r, "shop", name)
	var m v1alpha1.PodProbeMarker
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &m); err != nil {
		w.t.Fatal(err)
	}
	return m.Status
}

func TestDelayedNodeIsReportedOnTheMarkersOfItsPods(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, gameMarker("m"), gamePod("a"))
	r := &markerReconciler{api: w.api}
	statusOf(w, r, "m")
	w.report()
	before := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	delayed := before.DeepCopy()
	edit(w, delayed, func(n *v1alpha1.NodePodProbe) {})
	delayed.Status.Conditions = []metav1.Condition{{Type: "Delayed", Status: "True", Reason: "ProbesDelayed", Message: "3 times their periods"}}
	if err := w.Client.Status().Update(t.Context(), delayed); err != nil {
		t.Fatal(err)
	}
	requests := r.markersOfNode(t.Context(), before, delayed)
	if len(requests) != 1 || requests[0].Name != "m" {
		t.Errorf("enqueued %v", requests)
	}
	if requests := r.markersOfNode(t.Context(), delayed, delayed); len(requests) > 0 {
		t.Errorf("enqueued %v without a change", requests)
	}
	c := meta.FindStatusCondition(statusOf(w, r, "m").Conditions, "Delayed")
	if event := recorder.Next(w.events); c == nil || c.Status != "True" || !strings.Contains(event, "Warning ProbesDelayed exec probes of 1 of 1 pods") {
		t.Errorf("condition %+v, event %q", c, event)
	}
	delayed.Status.Conditions[0].Message = "4 times their periods"
	if err := w.Client.Status().Update(t.Context(), delayed); err != nil {
		t.Fatal(err)
	}
	c = meta.FindStatusCondition(statusOf(w, r, "m").Conditions, "Delayed")
	if event := recorder.Next(w.events); !strings.Contains(c.Message, "4 times") || event != "" {
		t.Errorf("condition %+v, event %q for another factor", c, event)
	}
	delayed.Status.Conditions[0].Status = "False"
	if err := w.Client.Status().Update(t.Context(), delayed); err != nil {
		t.Fatal(err)
	}
	c = meta.FindStatusCondition(statusOf(w, r, "m").Conditions, "Delayed")
	if event := recorder.Next(w.events); c == nil || c.Status != "False" || !strings.Contains(event, "Normal ProbesOnTime") {
		t.Errorf("condition %+v, event %q", c, event)
	}
}

// What the CRD drops is neither written nor reported again and again.
func TestNoRepeatedPatchesUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	broken := gameMarker("broken")
	broken.Spec.Probes[0].ContainerName = "none"
	w := newAPIServer(t, broken, gamePod("a"))
	w.pruned = true
	r := &markerReconciler{api: w.api}
	same(t, "writes", w.settle(r, "shop", "broken"), "patch broken", "patch status broken")
	same(t, "writes a minute later", w.settle(r, "shop", "broken"))
	if event := recorder.Next(w.events); !strings.Contains(event, "ContainerOrPortNotFound") {
		t.Errorf("event %q", event)
	}
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("another event %q", event)
	}
	edit(w, broken, func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].ContainerName = "app" })
	same(t, "writes after a change", w.settle(r, "shop", "broken"), "patch status broken")
	if event := recorder.Next(w.events); !strings.Contains(event, "Normal Probing") {
		t.Errorf("event %q", event)
	}
	if err := w.Create(t.Context(), gamePod("b")); err != nil {
		t.Fatal(err)
	}
	same(t, "writes for another pod", w.settle(r, "shop", "broken"), "patch status broken")
	for range 2 { // deleted and created again: nothing is known of the new one
		edit(w, broken, func(m *v1alpha1.PodProbeMarker) { m.Finalizers = nil })
		w.remove(broken)
		same(t, "writes of one that is gone", w.settle(r, "shop", "broken"))
		broken = gameMarker("broken")
		broken.Spec.Probes[0].ContainerName = "none"
		if err := w.Create(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		w.settle(r, "shop", "broken")
		if event := recorder.Next(w.events); !strings.Contains(event, "ContainerOrPortNotFound") {
			t.Errorf("event %q", event)
		}
	}
}

func TestPodsOmittedFromTheirNodeAreReportedOnTheMarker(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), largeMarker("m"), gamePod("a"))
	n := &nodeReconciler{api: w.api}
	w.settle(n, "", "node-1")
	for range 3 {
		w.settle(n, "", "node-1")
	}
	if recorder.Next(w.events) == "" || recorder.Next(w.events) != "" {
		t.Error("the pod is to be told once")
	}
	r := &markerReconciler{api: w.api}
	if c := statusOf(w, r, "m").Conditions[0]; c.Status != "False" || c.Reason != "TooManyProbes" || !strings.Contains(c.Message, "1 of 1 pods are not probed") {
		t.Errorf("%+v", c)
	}
	w.remove(testNode())
	w.settle(n, "", "node-1")
	if len(w.omitted.all()) > 0 {
		t.Errorf("after its node is gone: %v", w.omitted.all())
	}
	if err := w.Create(t.Context(), testNode()); err != nil {
		t.Fatal(err)
	}
	w.settle(n, "", "node-1")
	w.remove(gamePod("a"))
	w.settle(n, "", "node-1")
	if c := statusOf(w, r, "m").Conditions[0]; c.Reason != "NoPods" || len(w.omitted.all()) > 0 {
		t.Errorf("after its pod is gone: %+v", c)
	}
}

// A marker that does not work, and then does not for another reason, has an Event for each.
func TestAnotherReasonIsAnotherEvent(t *testing.T) {
	t.Parallel()
	broken := gameMarker("m")
	broken.Spec.Probes[0].ContainerName = "none"
	w := newAPIServer(t, broken, gamePod("a"))
	s := &markerReconciler{api: w.api}
	w.settle(s, "shop", "m")
	if event := recorder.Next(w.events); !strings.Contains(event, "Warning ContainerOrPortNotFound") {
		t.Errorf("event %q", event)
	}
	edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" })
	w.settle(s, "shop", "m")
	if event := recorder.Next(w.events); !strings.Contains(event, "Warning InvalidSpec") {
		t.Errorf("event %q", event)
	}
}
