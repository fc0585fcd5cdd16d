package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// newNode returns a DaemonSet of three pods with the former template and of one, on a new node, that was created with the new one.
func newNode(t *testing.T, change func(*world)) *world {
	t.Helper()
	w := newWorld(t, "DaemonSet", 3)
	w.policy.Spec.Paused = true
	change(w)
	w.edit(image("app:2"))
	w.rounds(2)
	w.daemonSet.Status.DesiredNumberScheduled = 4
	w.rounds(10)
	if diff := cmp.Diff(map[string]int{"app:1": 3, "app:2": 1}, w.images()); diff != "" || w.policy.Status.UpdatedPods != 1 {
		t.Fatalf("%d pods are updated, images %s", w.policy.Status.UpdatedPods, diff)
	}
	w.policy.Spec.Paused = false
	w.rounds(20)
	return w
}

func TestPodOnANewNodeThatFailsStopsTheUpdate(t *testing.T) {
	t.Parallel()
	w := newNode(t, func(w *world) {
		w.bad["app:2"] = true
		w.policy.Spec.MaxUnavailable = new(intstr.FromInt32(2)) // otherwise the failed pod is all that may be unavailable
	})
	if w.images()["app:1"] != 3 || w.progressing() != "False PodsFailed" || w.policy.Status.FailedPods != 1 {
		t.Errorf("images %v, %s, %d pods failed", w.images(), w.progressing(), w.policy.Status.FailedPods)
	}
	w.edit(image("app:3"))
	if w.rounds(60); w.images()["app:3"] != 4 || w.progressing() != "True Completed" {
		t.Errorf("with another image %v, %s", w.images(), w.progressing())
	}
}

func TestPodOnANewNodeCountsForTheStep(t *testing.T) {
	t.Parallel()
	w := newNode(t, func(w *world) {
		w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
	})
	if w.images()["app:1"] != 3 || w.progressing() != "True Step" {
		t.Errorf("images %v, %s", w.images(), w.progressing())
	}
}

func TestPodOnANewNodeCountsForMaxUnavailable(t *testing.T) {
	t.Parallel()
	w := newNode(t, func(w *world) { w.slow["web-3"] = true })
	if w.images()["app:1"] != 3 || w.progressing() != "True MaxUnavailable" {
		t.Errorf("images %v, %s", w.images(), w.progressing())
	}
	delete(w.slow, "web-3")
	if w.rounds(60); w.images()["app:2"] != 4 || w.progressing() != "True Completed" {
		t.Errorf("when it is ready: images %v, %s", w.images(), w.progressing())
	}
}
