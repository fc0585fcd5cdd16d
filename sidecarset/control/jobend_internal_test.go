package control

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// A sidecar of a Job may be ended by another image, which is no version of the SidecarSet and is not to be corrected.
func TestASidecarThatEndsWithItsJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	pod := w.pods()[0]
	pod.Spec.Containers[1].Image = "exit:1"
	w.check(w.Update(t.Context(), &pod))
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue})
	w.check(w.Status().Update(t.Context(), &pod))
	for range 3 {
		w.now = w.now.Add(time.Minute)
		w.look()
	}
	if got := w.images(); got["exit:1"] != 1 || w.set().Status.MatchedPods != 1 {
		t.Errorf("images %v, %d pods matched", got, w.set().Status.MatchedPods)
	}
	w.change(image("log:2"))
	for range 3 {
		w.look()
	}
	if got := w.images(); got["exit:1"] != 1 || got["log:2"] != 1 {
		t.Errorf("images %v after the update", got)
	}
}
