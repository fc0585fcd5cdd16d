package control

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
)

// label sets the labels of the namespace, and shows that to the controller. It reports whether the controller wants to reconcile.
func (w *world) label(labels map[string]string) bool {
	w.t.Helper()
	var before corev1.Namespace
	w.check(w.Get(w.t.Context(), client.ObjectKey{Name: "shop"}, &before))
	after := before.DeepCopy()
	after.Labels = labels
	w.check(w.Update(w.t.Context(), after))
	q := &enqueued{}
	w.r.namespaceEvents().Update(w.t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: after}, q)
	return q.any
}

// enqueued notes that something was added to a queue.
type enqueued struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	any bool
}

func (q *enqueued) AddAfter(ctrl.Request, time.Duration) { q.any = true }

func TestNamespaceIsSelectedAfterItsPodsExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	})
	w.miss("missed")
	w.look()
	if s := w.set().Status; s.MatchedPods != 0 || s.NotInjectedPods != 0 {
		t.Errorf("before the namespace has the label: %d matched, %d not injected", s.MatchedPods, s.NotInjectedPods)
	}
	if w.label(map[string]string{"other": "b"}) {
		t.Error("a label that the SidecarSet does not select makes it look again")
	}
	if !w.label(map[string]string{"team": "a"}) {
		t.Fatal("the SidecarSet is not looked at again")
	}
	w.reconcile()
	if s := w.set().Status; s.MatchedPods != 2 || s.UpdatedPods != 2 || s.NotInjectedPods != 1 {
		t.Errorf("after that: %d matched, %d updated, %d not injected", s.MatchedPods, s.UpdatedPods, s.NotInjectedPods)
	}
	w.change(image("log:2"))
	w.rounds(4)
	for _, pod := range w.pods() {
		if pod.Name != "missed" && pod.Spec.Containers[1].Image != "log:2" {
			t.Errorf("pod %s is not updated", pod.Name)
		}
	}
	if !w.label(nil) {
		t.Fatal("the SidecarSet is not looked at again when the label is gone")
	}
	w.reconcile()
	w.change(image("log:3"))
	w.rounds(4)
	if s := w.set().Status; s.MatchedPods != 0 || s.NotInjectedPods != 0 {
		t.Errorf("without the label again: %d matched, %d not injected", s.MatchedPods, s.NotInjectedPods)
	}
}
