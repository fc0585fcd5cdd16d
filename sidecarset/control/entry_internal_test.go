package control

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A reconciliation must not cost more the more pods there are for which there is nothing to do.
func TestPodsForWhichNothingIsToDoAreNotPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.rounds(1)
	w.change(image("log:2"))
	w.look()
	s := w.r.find("logs")
	if len(s.pods) != 3 || len(s.pending) == 0 {
		t.Errorf("during the update %d of %d pods are pending", len(s.pending), len(s.pods))
	}
	w.rounds(10)
	if got := w.images()["log:2"]; got != 3 || len(s.pods) != 3 || len(s.pending) != 0 {
		t.Errorf("%d pods are updated, and %d of %d are pending", got, len(s.pending), len(s.pods))
	}
	for _, pod := range w.pods() {
		if !s.remove(client.ObjectKeyFromObject(&pod), pod.UID) {
			t.Errorf("pod %s was not known", pod.Name)
		}
	}
	if len(s.pods) != 0 || len(s.pending) != 0 {
		t.Errorf("%d pods are known after their deletion, %d are pending", len(s.pods), len(s.pending))
	}
}
