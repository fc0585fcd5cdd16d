package requests

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReadinessGateIsSetOnce(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod())
	reconciler := readinessReconciler{client: w, now: func() time.Time { return noon }}
	for range 2 {
		if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"patch web/status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	conditions := w.pod().Status.Conditions
	if len(conditions) != 2 || conditions[0].Type != corev1.PodReady || conditions[1].Type != "KruisePodReady" || conditions[1].Status != corev1.ConditionTrue {
		t.Errorf("conditions %+v", conditions)
	}
}
