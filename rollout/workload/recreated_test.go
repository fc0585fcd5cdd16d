package workload_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// recreated waits until the update has completed, and checks how many pods count as recreated.
func (w *world) recreated(want int32) {
	w.t.Helper()
	w.rounds(60)
	if got := w.policy.Status.RecreatedPods; got != want || w.progressing() != "True Completed" {
		w.t.Errorf("%d pods recreated, want %d; %s, images %v", got, want, w.progressing(), w.images())
	}
}

// resize changes the number of pods of a workload.
func (w *world) resize(pods int32) {
	switch {
	case w.deployment != nil:
		w.deployment.Spec.Replicas = &pods
	case w.statefulSet != nil:
		w.statefulSet.Spec.Replicas = &pods
	default:
		w.daemonSet.Status.DesiredNumberScheduled = pods
	}
}

func TestPodsThatAreCreatedWithTheTemplateAreCounted(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind, 3)
			w.recreated(0) // the pods are as old as the policy
			w.edit(image("app:2"))
			w.recreated(0)
			w.resize(4)
			w.recreated(1)
			delete(w.pods, slices.Min(slices.Collect(maps.Keys(w.pods)))) // one that was updated in place
			w.recreated(2)
			w.edit(image("app:3"))
			w.recreated(0)
			w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = "other" }) // not possible in place
			w.recreated(4)
		})
	}
}

// During an update a Deployment gets pods of the former template, which are updated in place, and a DaemonSet pods of the new one.
func TestPodsThatAreCreatedDuringAnUpdateAreCountedByTheirTemplate(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int32{"Deployment": 0, "DaemonSet": 1} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind, 3)
			w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
			w.edit(image("app:2"))
			w.rounds(20)
			w.resize(4)
			w.rounds(5)
			if got := w.policy.Status.RecreatedPods; got != want {
				t.Errorf("%d pods recreated during the step, want %d", got, want)
			}
			w.policy.Spec.Steps = nil
			w.recreated(want)
		})
	}
}
