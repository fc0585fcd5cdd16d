package control

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// carries compares the marks of a pod that was idle.
func carries(w *apiServer, name, label string, conditions int) {
	w.t.Helper()
	pod := w.podNamed(name)
	if pod.Labels["m"] != label || len(pod.Status.Conditions) != 2+conditions {
		w.t.Errorf("pod %s: labels %v, conditions %+v", name, pod.Labels, pod.Status.Conditions)
	}
}

// grow gives the marker of "m" probes that take all of a NodePodProbe, or takes them away.
func grow(w *apiServer, large bool) {
	probes := gameMarker("m").Spec.Probes
	if large {
		probes = append(probes, largeMarker("m").Spec.Probes[1:]...)
	}
	edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = probes })
}

// A game server that was idle when its probe ended would be deleted as idle for ever.
func TestMarksGoWithAPodThatIsLeftOutOfItsNodePodProbe(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	n, p := &nodeReconciler{api: w.api}, writing{newPodDestination(w.api)}
	w.settle(n, "", "node-1")
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	w.settle(p, "shop", "a")
	carries(w, "a", "idle", 1)

	grow(w, true)
	same(t, "the NodePodProbe is behind", w.settle(p, "shop", "a"))
	same(t, "writes", w.settle(n, "", "node-1"), "patch node-1")
	same(t, "computed again", w.rewritten, "a")
	same(t, "left out", w.settle(p, "shop", "a"), "apply status a")
	carries(w, "a", "", 0)
	w.report()
	same(t, "the daemon has ended its probes", w.settle(p, "shop", "a"))

	grow(w, false)
	w.settle(n, "", "node-1")
	same(t, "computed again", w.rewritten, "a", "a")
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	same(t, "there is space again", w.settle(p, "shop", "a"), "apply status a")
	carries(w, "a", "idle", 1)
}

func TestMarksGoWithTheContainerOfAProbe(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	p := writing{newPodDestination(w.api)}
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	w.settle(p, "shop", "a")
	edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].ContainerName = "absent" })
	same(t, "writes", w.settle(p, "shop", "a"), "apply status a")
	carries(w, "a", "", 0)
}

// Neither a NodePodProbe that is made again nor a manager that has just started takes marks away.
func TestMarksStayWithoutANodePodProbe(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	n, p := &nodeReconciler{api: w.api}, writing{newPodDestination(w.api)}
	w.settle(n, "", "node-1")
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	w.settle(p, "shop", "a")
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	for name, change := range map[string]func(){
		"without a NodePodProbe":   func() { w.remove(object) },
		"with an empty one":        func() { w.report() },
		"with one that is written": func() { w.settle(n, "", "node-1") },
	} {
		change()
		same(t, name, w.settle(p, "shop", "a"))
		next := w.nextLeader()
		same(t, name+", the next leader", w.settle(writing{newPodDestination(next)}, "shop", "a"))
		w.settle(n, "", "node-1")
	}
	carries(w, "a", "idle", 1)
}

// The marker of the next leader may be first: it does not know yet which pods are left out.
func TestAChangeOfLeaderLeavesTheStatusOfAMarkerWithPodsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), largeMarker("m"), gamePod("a"))
	w.settle(&nodeReconciler{api: w.api}, "", "node-1")
	if c := statusOf(w, &markerReconciler{api: w.api}, "m").Conditions[0]; c.Reason != "TooManyProbes" {
		t.Fatalf("%+v", c)
	}
	w.events = events.NewFakeRecorder(10)
	next := w.nextLeader()
	r := &markerReconciler{api: next}
	same(t, "writes at first", w.settle(r, "shop", "m"))
	result, err := r.Reconcile(t.Context(), requestFor(largeMarker("m"))[0])
	if err != nil || result.RequeueAfter != markerDelay {
		t.Errorf("%+v, %v: it is not looked at again", result, err)
	}
	if event := recorder.Next(w.events); event != "" {
		t.Errorf("event %q", event)
	}
	same(t, "writes of its node", w.settle(&nodeReconciler{api: next}, "", "node-1"))
	same(t, "writes afterwards", w.settle(r, "shop", "m"))
	w.remove(gamePod("a"))
	w.settle(&nodeReconciler{api: next}, "", "node-1")
	if c := statusOf(w, r, "m").Conditions[0]; c.Reason != "NoPods" {
		t.Errorf("%+v", c)
	}
}

// The cache of compiled markers saves a second for each node of a large cluster, if it is asked.
func TestMarkersThatAreListedAgainAreNotCompiledAgain(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, gameMarker("m"))
	for _, namespace := range []string{"", "shop"} {
		first, err := w.listMarkers(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.listMarkers(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		if &first[0].Probes[0] != &again[0].Probes[0] {
			t.Errorf("namespace %q: compiled again", namespace)
		}
	}
}
