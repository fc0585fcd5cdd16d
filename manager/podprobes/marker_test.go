package podprobes

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

func TestMarkerStatus(t *testing.T) {
	t.Parallel()
	broken := gameMarker("broken")
	broken.Spec.Probes[0].ContainerName = "none"
	w := newAPIServer(t, gameMarker("m"), broken, gamePod("a"), gamePod("b"))
	s := &markerReconciler{api: w.api}
	same(t, "writes", w.settle(s, "shop", "m"), "patch status m")
	same(t, "writes", w.settle(s, "shop", "broken"), "patch status broken")
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
		t.Error("nobody is told of the marker that does not work")
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

func TestFinalizerOfKruiseManagerIsRemoved(t *testing.T) {
	t.Parallel()
	m := gameMarker("m")
	m.Finalizers = []string{"kruise.io/node-pod-probe-cleanup"}
	w := newAPIServer(t, m, gamePod("a"))
	w.remove(m)
	same(t, "writes", w.settle(&markerReconciler{api: w.api}, "shop", "m"), "patch m")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
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
