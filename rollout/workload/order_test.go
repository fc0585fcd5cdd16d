package workload_test

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// updatedInOrder returns the pods in the order in which they get an image.
func (w *world) updatedInOrder(to string) (order []string) {
	w.t.Helper()
	w.edit(image(to))
	for range 40 {
		w.rounds(1)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			if w.pods[name].Spec.Containers[0].Image == to && !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	return order
}

// A cost that is not an int32 counts as 0, as for Kubernetes.
func TestPodsAreUpdatedInTheOrderOfTheirDeletionCost(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 4)
		names := slices.Sorted(maps.Keys(w.pods))
		for i, cost := range map[int]string{0: "10", 1: "-5", 2: "99999999999", 3: "9"} {
			metav1.SetMetaDataAnnotation(&w.pods[names[i]].ObjectMeta, "controller.kubernetes.io/pod-deletion-cost", cost)
		}
		w.policy.Spec.PodOrder = v1alpha1.PodOrderDeletionCost
		if got, want := w.updatedInOrder("app:2"), []string{names[1], names[2], names[3], names[0]}; !slices.Equal(got, want) {
			t.Errorf("%s: updated %v, want %v", kind, got, want)
		}
	}
}
