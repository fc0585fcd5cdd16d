package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// Writes by others since the cache was up to date are kept: finalizers, the specs of markers, what another manager has
// computed for a node.
func TestStaleCacheOverwritesNothing(t *testing.T) {
	t.Parallel()
	const cleanup, other = v1alpha1.FinalizerNodePodProbeCleanup, "example.com/other"
	finalizers := func(w *apiServer, list ...string) {
		edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Finalizers = list })
	}
	node := func() *v1alpha1.NodePodProbe {
		n := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-n"}}
		n.Spec.PodProbes = []v1alpha1.PodProbe{{Namespace: "shop", Name: "gone", UID: "uid-gone"}}
		return n
	}
	for name, tc := range map[string]struct {
		cached  func(*apiServer) // what the cache has seen last
		object  client.Object    // what it is behind with
		others  func(*apiServer)
		refused string // write of the manager; empty: refused for the UID
	}{
		"finalizers of a new marker": {object: gameMarker("m"), refused: "patch m", others: func(w *apiServer) { finalizers(w, other) }},
		"finalizers of a deleted marker": {
			cached: func(w *apiServer) { finalizers(w, other, cleanup); w.remove(gameMarker("m")) },
			object: gameMarker("m"), refused: "patch m", others: func(w *apiServer) { finalizers(w, cleanup) },
		},
		"status of a marker": {
			cached: func(w *apiServer) { finalizers(w, cleanup) }, object: gameMarker("m"), refused: "patch status m",
			others: func(w *apiServer) {
				edit(w, gameMarker("m"), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].ContainerName = "none" })
			},
		},
		"probes of a node": {object: node(), refused: "patch node-1", others: func(w *apiServer) {
			edit(w, node(), func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes[0].Name = "from another manager" })
		}},
		"deletion of a NodePodProbe that was created again": {
			cached: func(w *apiServer) { w.remove(testNode()) }, object: node(), others: func(w *apiServer) {
				again := node()
				w.remove(again)
				again.UID = "uid-again"
				if err := w.Create(w.t.Context(), again); err != nil {
					w.t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"), node())
			if tc.cached != nil {
				tc.cached(w)
			}
			look := func() client.Object {
				object := tc.object.DeepCopyObject().(client.Object)
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			stale := look()
			tc.others(w)
			before := look()
			w.client = stalecache.Client{Client: w.Client, Object: stale}
			var reconciler reconcile.Reconciler = &markerReconciler{api: w.api}
			if _, ok := stale.(*v1alpha1.NodePodProbe); ok {
				reconciler = &nodeReconciler{api: w.api}
			}
			w.writes = nil
			result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(stale)})
			if !apierrors.IsConflict(err) {
				t.Errorf("result %+v, error %v; want a conflict", result, err)
			}
			if tc.refused != "" {
				same(t, "tried", w.writes, tc.refused)
			}
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Errorf("what others have written is changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A pod that has taken the name of the probed one gets none of its results.
func TestStaleCacheMarksNoOtherPod(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	stale := w.podNamed("a")
	w.remove(gamePod("a"))
	again := gamePod("a")
	again.UID = "uid-again"
	if err := w.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.client = stalecache.Client{Client: w.Client, Object: stale}
	d := newPodDestination(w.api)
	w.writes = nil
	if _, err := d.Write(t.Context(), client.ObjectKeyFromObject(stale)); err != nil {
		t.Fatal(err)
	}
	same(t, "tried", w.writes, "apply status a")
	if pod := w.podNamed("a"); len(pod.Labels) != 1 || len(pod.Status.Conditions) != 2 {
		t.Errorf("labels %v, conditions %+v", pod.Labels, pod.Status.Conditions)
	}
}
