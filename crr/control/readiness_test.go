package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReadinessGateIsSetOnce(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod())
	reconciler := readinessReconciler{client: w, live: w, now: func() time.Time { return noon }}
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

// A template with the gate would never become ready otherwise.
func TestReadinessGateOfInPlaceUpdatesIsSetOnceAndNotForOpenKruise(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		owner  string
		writes []string
	}{
		"a Deployment's": {"apps/v1", []string{"patch web/status"}},
		"a CloneSet's":   {"apps.kruise.io/v1alpha1", nil},
	} {
		pod := testPod()
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: tt.owner, Kind: "X", Name: "x", UID: "x", Controller: new(true)}}
		w := newAPIServer(t, pod)
		reconciler := readinessReconciler{client: w, live: w, now: func() time.Time { return noon }}
		for range 2 {
			if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tt.writes, w.writes); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", name, diff)
		}
	}
}

// A command that was killed in its drain has left the pod out of its Services.
func TestPodThatACommandHasLeftIsPutBackIntoItsServices(t *testing.T) {
	t.Parallel()
	pod := testPod()
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
	pod.Annotations = map[string]string{"apps.kruise.io/inplace-update-state": `{"revision":"","updateTimestamp":null,"lastContainerStatuses":null,"refit":{"drainSeconds":30}}`}
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		corev1.PodCondition{Type: "InPlaceUpdateReady", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon)})
	w := newAPIServer(t, pod)
	now := noon
	reconciler := readinessReconciler{client: w, live: w, now: func() time.Time { return now }}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}
	result, err := reconciler.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != 90*time.Second || len(w.writes) > 0 {
		t.Fatalf("%v, %v after %v, want to look again after the drain and a minute", result, err, w.writes)
	}
	now = now.Add(result.RequeueAfter)
	if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	conditions := w.pod().Status.Conditions
	if last := conditions[len(conditions)-1]; last.Type != "InPlaceUpdateReady" || last.Status != corev1.ConditionTrue {
		t.Errorf("conditions %+v", conditions)
	}
}
