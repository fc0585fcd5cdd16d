package control

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// A node with a finalizer is deleted when its pods have gone, which may wait for the result of a probe.
func TestPodsAreProbedWhileTheirNodeIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels  map[string]string
		created []string // of the NodePodProbe
		probes  string   // annotation of the pod
		deleted []string
	}{
		"node":         {nil, []string{"create node-1"}, "", []string{"delete node-1"}},
		"virtual node": {map[string]string{"type": "virtual-kubelet"}, nil, "m", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := testNode()
			node.Labels, node.Finalizers = tc.labels, []string{"karpenter.sh/termination"}
			w := newAPIServer(t, node, gameMarker("m"), gamePod("a"))
			n, p := &nodeReconciler{api: w.api}, writing{newPodDestination(w.api)}
			same(t, "first", w.settle(n, "", "node-1"), tc.created...)
			w.settle(p, "shop", "a")
			w.remove(node)
			same(t, "being deleted", w.settle(n, "", "node-1"))
			same(t, "pod of it", w.settle(p, "shop", "a"))
			if got := w.podNamed("a").Annotations[v1alpha1.AnnotationPodProbeMarkerList]; got != tc.probes {
				t.Errorf("probes of markers %q", got)
			}
			edit(w, testNode(), func(n *corev1.Node) { n.Finalizers = nil })
			same(t, "deleted", w.settle(n, "", "node-1"), tc.deleted...)
		})
	}
}

// With the probes of hundreds of pods the record of who set which field takes half of the time of each write, also of the daemon's.
func TestAChangeOfTheProbesEndsTheRecordOfWhoSetWhichField(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	n := &nodeReconciler{api: w.api}
	same(t, "first", w.settle(n, "", "node-1"), "create node-1")
	w.remove(gamePod("a"))
	same(t, "without the pod", w.settle(n, "", "node-1"), "patch node-1")
	if want := `"managedFields":[{}]`; !strings.Contains(w.patch, want) {
		t.Errorf("patch %s, want %s in it", w.patch, want)
	}
}
