package control

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// The API server drops what OpenKruise's CRD does not have: the conditions, and most of the counters.
func TestStatusUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	writes := 0
	w.r.client = cached(interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if set, ok := object.(*v1beta1.SidecarSet); ok {
				writes++
				was := set.Status
				set.Status = v1beta1.SidecarSetStatus{
					ObservedGeneration: was.ObservedGeneration, MatchedPods: was.MatchedPods, UpdatedPods: was.UpdatedPods, ReadyPods: was.ReadyPods,
					UpdatedReadyPods: was.UpdatedReadyPods, LatestRevision: was.LatestRevision, CollisionCount: was.CollisionCount,
				}
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
	}))
	w.rounds(3)
	if !w.told("Completed") || w.told("Completed") {
		t.Error("not one Event says that the rollout is completed")
	}
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	w.rounds(3)
	if !w.told("Warning NotUpgradable") {
		t.Error("no Event says that the pods cannot be updated")
	}
	before := writes
	if w.rounds(20); writes != before {
		t.Errorf("the status is written %d times although nothing changes", writes-before)
	}
	if w.told("Warning NotUpgradable") {
		t.Error("the same is told again")
	}
}
