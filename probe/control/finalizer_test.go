package control

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

func TestADeletedMarkerStaysUntilNoNodePodProbeNamesIt(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("way"), gameMarker("gateway"), gamePod("a"))
	r, n := &markerReconciler{api: w.api}, &nodeReconciler{api: w.api}
	w.settle(n, "", "node-1")
	same(t, "writes of a new marker", w.settle(r, "shop", "way"), "patch way", "patch status way")
	m := gameMarker("way")
	w.remove(m)
	same(t, "writes while it is named", w.settle(r, "shop", "way"))
	get := func() *v1alpha1.NodePodProbe {
		node := &v1alpha1.NodePodProbe{}
		if err := w.Get(t.Context(), client.ObjectKey{Name: "node-1"}, node); err != nil {
			t.Fatal(err)
		}
		return node
	}
	before := get()
	w.settle(n, "", "node-1")
	after := get()
	before.Generation, after.Generation = 1, 2 // which the fake client does not count
	want := []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(m)}}
	if got := r.endingMarkers(t.Context(), before, after); !slices.Equal(got, want) {
		t.Errorf("the NodePodProbe without its probes enqueues %v", got)
	}
	if got := r.endingMarkers(t.Context(), before, nil); !slices.Equal(got, want) {
		t.Errorf("the NodePodProbe of a node that goes enqueues %v", got)
	}
	if got := append(r.endingMarkers(t.Context(), nil, after), r.endingMarkers(t.Context(), after, after)...); len(got) > 0 {
		t.Errorf("without a probe less: %v", got)
	}
	still := before.DeepCopy()
	still.Generation = 3
	if got := r.endingMarkers(t.Context(), before, still); len(got) > 0 {
		t.Errorf("the NodePodProbe still has its probes, and enqueues %v", got)
	}
	same(t, "writes once none names it", w.settle(r, "shop", "way"), "patch way")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 gateway#idle")
}

func TestOtherFinalizersOfAMarkerStay(t *testing.T) {
	t.Parallel()
	m := gameMarker("m")
	m.Finalizers = []string{"example.com/other", "kruise.io/node-pod-probe-cleanup"}
	w := newAPIServer(t, m)
	w.remove(m)
	same(t, "writes", w.settle(&markerReconciler{api: w.api}, "shop", "m"), "patch m")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || !slices.Equal(m.Finalizers, []string{"example.com/other"}) {
		t.Errorf("finalizers %v, %v", m.Finalizers, err)
	}
}

func TestEveryNodeHasANodePodProbe(t *testing.T) {
	t.Parallel()
	virtual := testNode()
	virtual.Name, virtual.Labels = "virtual", map[string]string{"type": "virtual-kubelet"}
	w := newAPIServer(t, testNode(), virtual, gamePod("a"))
	every, needed := &nodeReconciler{api: w.api, empty: true}, &nodeReconciler{api: w.api}
	same(t, "writes where only needed ones are wanted", w.settle(needed, "", "node-1"))
	same(t, "writes for a new node", w.settle(every, "", "node-1"), "create node-1")
	same(t, "writes a minute later", w.settle(every, "", "node-1"))
	same(t, "writes for a virtual node", w.settle(every, "", "virtual"))
	w.remove(testNode())
	same(t, "writes for a node that is gone", w.settle(every, "", "node-1"), "delete node-1")
	same(t, "writes afterwards", w.settle(every, "", "node-1"))
}

// Its pods are still there, and nothing changes about them.
func TestANodeThatIsRegisteredAgainIsProbedAgain(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	n := &nodeReconciler{api: w.api}
	w.settle(n, "", "node-1")
	w.remove(testNode())
	same(t, "writes", w.settle(n, "", "node-1"), "delete node-1")
	again := testNode()
	again.UID = "another"
	if err := w.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	same(t, "writes", w.settle(n, "", "node-1"), "create node-1")
	same(t, "NodePodProbe", w.probesOfNode(), "a 10.0.0.1 m#idle")
}
