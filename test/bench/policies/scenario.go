package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/fakenodes"
)

// empty, quiet and rollout are the steps for which there are targets.
const (
	empty   = "a policy without pods"
	quiet   = "nothing changes"
	rollout = "all pods updated"
)

func (b *bench) scenario(ctx context.Context) error {
	if err := b.Step(ctx, empty, 0, b.create, b.counted(0)); err != nil {
		return err
	}
	err := b.Grow(ctx, fakenodes.Growth{Flips: b.flips, Populate: b.populate, Pods: b.podNames, Counted: b.counted})
	if err != nil {
		return err
	}
	if err := b.Step(ctx, quiet, 0, func(ctx context.Context) error { return wait.For(ctx, b.Quiet) }, nil); err != nil {
		return err
	}
	return b.Step(ctx, rollout, b.Pods, func(ctx context.Context) error {
		return b.change(ctx, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" })
	}, b.counted(b.Pods))
}

// podNames returns the names of the pods.
func (b *bench) podNames(ctx context.Context) ([]types.NamespacedName, error) {
	var list corev1.PodList
	if err := b.followed.List(ctx, &list, client.InNamespace(name)); err != nil {
		return nil, err
	}
	names := make([]types.NamespacedName, len(list.Items))
	for i := range list.Items {
		names[i] = client.ObjectKeyFromObject(&list.Items[i])
	}
	return names, nil
}
