package control

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// leaves lets a pod of the world be deleted, by a user or by an eviction.
func (w *world) leaves(name string, evicted bool) {
	w.t.Helper()
	w.slowly()
	for _, pod := range w.pods() {
		if pod.Name != name {
			continue
		}
		if evicted {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now),
			})
			w.check(w.Status().Update(w.t.Context(), &pod))
		}
		w.check(w.Delete(w.t.Context(), &pod))
	}
}

// It was Completed as soon as the pod was none of it any more, while its successor was not there or had not become ready.
func TestAnUpdateIsNotCompletedBeforeThePodIsReplacedThatOthersDelete(t *testing.T) {
	t.Parallel()
	for name, evicted := range map[string]bool{"deleted": false, "evicted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.ofOne()
			w.look()
			w.denied["web-2"] = true
			w.change(image("log:2"))
			w.rounds(6)
			w.kubelet()
			w.look()
			if c := w.set().Status; c.UpdatedReadyPods != 2 {
				t.Fatalf("%d pods are updated and ready", c.UpdatedReadyPods)
			}
			w.leaves("web-2", evicted)
			w.looks()
			w.condition(v1beta1.ConditionProgressing, "True Updating")
			gone := w.end()
			if evicted { // of a pod that was deleted it is not known whether its workload was scaled down
				w.looks()
				w.condition(v1beta1.ConditionProgressing, "True Updating")
			}
			gone.CreationTimestamp = metav1.NewTime(w.now)
			gone.Spec.Containers[1].Image = "log:2"
			w.createAgain(&gone)
			w.rounds(2)
			w.condition(v1beta1.ConditionProgressing, "True Completed")
			w.leaves("web-0", evicted) // that is no part of the update
			w.looks()
			w.condition(v1beta1.ConditionProgressing, "True Completed")
		})
	}
}

// A StatefulSet deletes a pod for a rollout of its template: the other pod of two would have been out as well.
func TestASidecarIsNotUpdatedWhileAnotherPodOfTheWorkloadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.ofOne()
	w.look()
	w.leaves("web-1", false)
	w.look()
	w.change(image("log:2"))
	for range 3 {
		if again := w.reconcile(); w.images()["log:2"] != 0 || again == 0 {
			t.Fatalf("%v, looks again in %s", w.images(), again)
		}
		w.now = w.now.Add(time.Second)
		w.look()
	}
	w.end()
	w.rounds(2)
	if got := w.images(); got["log:2"] != 1 {
		t.Errorf("%v when the pod has ended", got)
	}
}

// A node is drained while the sidecars are updated.
func TestAPodThatOthersEvictCountsAgainstMaxUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.ofOne()
	w.look()
	w.leaves("web-2", true)
	w.look()
	w.change(image("log:2"))
	w.looks()
	gone := w.end()
	w.looks()
	if got := w.images(); got["log:2"] != 0 {
		t.Fatalf("%v before the evicted pod is replaced", got)
	}
	gone.CreationTimestamp = metav1.NewTime(w.now)
	gone.Spec.Containers[1].Image = "log:2"
	w.createAgain(&gone)
	w.rounds(4)
	if got := w.images(); got["log:2"] != 3 {
		t.Errorf("%v in the end", got)
	}
}
