package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// What others have written since the cache was up to date stays: a stale cache must never turn a daemon's outcome into the
// manager's, make a pod ready that somebody else keeps not ready, or delete a request that has been created again.
func TestStaleCacheOverwritesNothing(t *testing.T) {
	t.Parallel()
	ended := func(r *v1beta1.ContainerRecreateRequest) { taken(r); recreated(r) }
	drains := func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5)) }
	holds := func(r *v1beta1.ContainerRecreateRequest) {
		drains(r)
		r.Finalizers = []string{v1beta1.FinalizerUnreadyAcquired}
	}
	expires := func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = new(int32(60)) }
	for name, tc := range map[string]struct {
		request func(*v1beta1.ContainerRecreateRequest) // as its user has made it
		status  func(*v1beta1.ContainerRecreateRequest) // as the cache has it
		pod     bool                                    // the pod is what the cache is behind with, instead of the request
		first   bool                                    // the reconciler of the first readiness condition
		others  func(*apiServer)
		refused string // write of the manager; empty: refused for the UID
	}{
		"outcome of a daemon": {others: endRequest, refused: "patch r/status"},
		"label of an ended request": {status: ended, refused: "patch r", others: func(w *apiServer) {
			w.edit(func(r *v1beta1.ContainerRecreateRequest) { r.Labels[v1beta1.LabelActive] = "false" })
		}},
		"finalizer for a drain of an ended request": {request: drains, status: taken, others: endRequest, refused: "patch r"},
		"deletion of a request that is to be kept": {request: expires, status: ended, refused: "delete r", others: func(w *apiServer) {
			w.edit(func(r *v1beta1.ContainerRecreateRequest) { r.Spec.TTLSecondsAfterFinished = nil })
		}},
		"deletion of a request that was created again": {request: expires, status: ended, others: createAgain},
		"drain of a pod that others keep not ready":    {request: holds, status: taken, pod: true, others: keepNotReady, refused: "patch web/status"},
		"first readiness of such a pod":                {pod: true, first: true, others: keepNotReady, refused: "patch web/status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := storedRequest(t)
			for _, edit := range []func(*v1beta1.ContainerRecreateRequest){tc.request, tc.status} {
				if edit != nil {
					edit(request)
				}
			}
			w := newAPIServer(t, testPod(), testNode(), request)
			w.now = noon.Add(time.Hour)
			look := func() client.Object {
				if tc.pod {
					return w.pod()
				}
				return w.request()
			}
			stale := look()
			tc.others(w)
			before := look()
			if tc.refused == "" {
				stale.SetResourceVersion(before.GetResourceVersion()) // so that nothing but the UID tells them apart
			}
			behind := stalecache.Client{Client: w, Object: stale}
			w.reconciler.client = behind
			var reconciler reconcile.Reconciler = w.reconciler
			what := key
			if tc.first {
				reconciler = readinessReconciler{client: behind, live: behind, now: func() time.Time { return w.now }}
				what = ctrl.Request{NamespacedName: client.ObjectKeyFromObject(stale)}
			}
			w.writes = nil
			result, err := reconciler.Reconcile(t.Context(), what)
			if !apierrors.IsConflict(err) {
				t.Errorf("result %+v, error %v; want a conflict", result, err)
			}
			if tc.refused != "" && !cmp.Equal(w.writes, []string{tc.refused}) {
				t.Errorf("tried %q, want %q", w.writes, tc.refused)
			}
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Errorf("what others have written is changed (-before +after):\n%s", diff)
			}
		})
	}
}

func endRequest(w *apiServer) {
	w.change(func(r *v1beta1.ContainerRecreateRequest) { taken(r); recreated(r) })
}

// createAgain replaces the request by one of the same name, as a user would.
func createAgain(w *apiServer) {
	w.t.Helper()
	again := w.request()
	if err := w.Delete(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
	again.UID, again.ResourceVersion = "uid-again", ""
	if err := w.Create(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
}

// keepNotReady is a drain by somebody else, as OpenKruise's.
func keepNotReady(w *apiServer) {
	w.t.Helper()
	pod := w.pod()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: v1beta1.ReadinessGateKruisePodReady, Status: corev1.ConditionFalse, Message: `[{"userAgent":"Lifecycle","key":"shop/web"}]`,
	})
	if err := w.Client.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}
