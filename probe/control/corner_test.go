package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/control/marks"
	"github.com/refit-project/refit/probe/podprobe"
	"github.com/refit-project/refit/test/kit/recorder"
)

// What may pass is tried again as a whole: no label is left out for it.
func TestOnlyWhatIsSaidAboutWhatWasSentIsARefusal(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	for name, tt := range map[string]struct {
		answer error
		want   bool
	}{
		"nothing":     {nil, false},
		"invalid":     {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil), true},
		"forbidden":   {apierrors.NewForbidden(pods, "a", errors.New("policy")), true},
		"bad request": {apierrors.NewBadRequest("no"), true},
		"too large":   {apierrors.NewRequestEntityTooLargeError("3 MiB"), true},
		"conflict":    {apierrors.NewConflict(pods, "a", errors.New("changed")), false},
		"gone":        {apierrors.NewNotFound(pods, "a"), false},
		"overload":    {apierrors.NewTooManyRequests("later", 1), false},
		"away":        {errors.New("connection refused"), false},
	} {
		if got := refused(tt.answer); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestARefusedMarkIsLeftOutForFiveMinutesOfThatPodAlone(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t)
	now := noon
	w.now = func() time.Time { return now }
	d := newPodDestination(w.api)
	d.remember(gamePod("a"), marks.Set{{Label: true, Key: "m", Value: "idle"}: true}, false)
	again, other := gamePod("a"), gamePod("b")
	again.UID = "another"
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		after time.Duration
		want  string
	}{
		"at once":                      {gamePod("a"), 0, ""},
		"just before it is over":       {gamePod("a"), 5*time.Minute - time.Second, ""},
		"five minutes later":           {gamePod("a"), 5 * time.Minute, "idle"},
		"another pod of the same name": {again, 0, "idle"},
		"a pod of another name":        {other, 0, "idle"},
	} {
		now = noon.Add(tt.after)
		desired := podprobe.Fields{Labels: map[string]string{"m": "idle"}, Annotations: map[string]string{}}
		if d.removeRefused(tt.pod, desired); desired.Labels["m"] != tt.want {
			t.Errorf("%s: %v", name, desired.Labels)
		}
	}
	now = noon
	d.forget(types.NamespacedName{Namespace: "shop", Name: "a"})
	if len(d.refusals) > 0 {
		t.Errorf("remembered of a pod that is gone: %v", d.refusals)
	}
}

func TestAPodThatIsLeftOutIsToldOfItsNodeOnce(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode())
	n := &nodeReconciler{api: w.api}
	for range 2 {
		n.setOmitted("node-1", []*corev1.Pod{gamePod("a")})
	}
	event := recorder.Next(w.events)
	if !strings.HasPrefix(event, "Warning ProbesLeftOut Not probed: the probes of all pods of node node-1 exceed") {
		t.Errorf("event %q", event)
	}
	recorder.Want(t, w.events)
	same(t, "computed again", w.rewritten, "a")
}

// A pod that runs nothing any more has no probes that could be on a node.
func TestAMarkerIsNoChangeForNodesOfPodsThatAreNotProbed(t *testing.T) {
	t.Parallel()
	ended, waiting, elsewhere := gamePod("ended"), gamePod("waiting"), gamePod("elsewhere")
	ended.Status.Phase, ended.Spec.NodeName = corev1.PodSucceeded, "node-2"
	waiting.Spec.NodeName = ""
	elsewhere.Namespace, elsewhere.Spec.NodeName = "bank", "node-3"
	w := newAPIServer(t, gamePod("a"), ended, waiting, elsewhere)
	same(t, "nodes", (&nodeReconciler{api: w.api}).nodesOfMarker(t.Context(), nil, gameMarker("m")), "node-1")
}

func TestWritesAreCountedByWhatIsWritten(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t)
	if err := w.written("pods", "apply", nil); err != nil {
		t.Error(err)
	}
	down := errors.New("down")
	if err := w.written("pods", "apply", down); !errors.Is(err, down) || err.Error() != "apply: down" {
		t.Errorf("%v", err)
	}
	if pods, markers := testutil.ToFloat64(w.api.writes.WithLabelValues("pods")), testutil.ToFloat64(w.api.writes.WithLabelValues("podprobemarkers")); pods != 2 || markers != 0 {
		t.Errorf("%v writes of pods, %v of markers", pods, markers)
	}
}

// The pod has an address and probes, and another name and UID than a new one: nothing else matters.
func TestProbesOfANodeDependOnNothingElseOfAPod(t *testing.T) {
	t.Parallel()
	after := gamePod("a")
	after.Annotations = map[string]string{"note": "x"}
	after.Status.ContainerStatuses[0].RestartCount++
	after.ResourceVersion, after.ManagedFields = "9", []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	if !sameProbes(gamePod("a"), after) {
		t.Error("a node is reconciled for what its probes do not depend on")
	}
}

// The result of a NodePodProbe that has been made again is compared with nothing.
func TestResultsOfANodePodProbeThatIsNewAreAllLookedAt(t *testing.T) {
	t.Parallel()
	r := &podReconciler{}
	is := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{Namespace: "shop", Name: "a", UID: "uid-a"}}}}
	was := is.DeepCopy()
	was.Status.PodProbeStatuses[0].UID = "the one before"
	for name, before := range map[string]*v1alpha1.NodePodProbe{"with a pod of the same name before": was, "with none": {}} {
		same(t, name, namesOf(r.podsWithNewResults(t.Context(), before, is)), "a")
	}
	if got := r.podsWithNewResults(t.Context(), is, is.DeepCopy()); len(got) > 0 {
		t.Errorf("the same results without a state: %v", got)
	}
}
