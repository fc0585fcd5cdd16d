package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/testcluster"
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
	have := 0
	for _, pods := range []int{100, 1000, b.Pods} {
		if pods = min(pods, b.Pods); pods <= have {
			continue
		}
		first := have
		have = pods
		err := b.Step(ctx, fmt.Sprintf("pods up to %d", pods), 0, func(ctx context.Context) error { return b.populate(ctx, first, pods) }, b.counted(pods))
		if err != nil {
			return err
		}
		if err := b.flip(ctx, pods); err != nil {
			return err
		}
	}
	if err := b.Step(ctx, quiet, 0, func(ctx context.Context) error { return wait.For(ctx, b.Quiet) }, nil); err != nil {
		return err
	}
	return b.Step(ctx, rollout, b.Pods, func(ctx context.Context) error {
		return b.change(ctx, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "app:2" })
	}, b.counted(b.Pods))
}

// flip makes pods not ready and ready again, and notes what that costs of the manager's CPU time.
func (b *bench) flip(ctx context.Context, pods int) error {
	var list corev1.PodList
	if err := b.followed.List(ctx, &list, client.InNamespace(name)); err != nil {
		return err
	}
	flips := min(b.flips, len(list.Items))
	err := b.Step(ctx, fmt.Sprintf("%d pods of %d flip twice", flips, pods), 0, func(ctx context.Context) error {
		for _, ready := range []bool{false, true} {
			err := testcluster.Each(ctx, flips, func(ctx context.Context, i int) error {
				return fakenodes.PatchStatus(ctx, b.Cluster.API, client.ObjectKeyFromObject(&list.Items[i]), nil, ready)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}, b.counted(pods))
	if err != nil {
		return err
	}
	last := &b.Steps[len(b.Steps)-1]
	b.flipped = append(b.flipped, flipped{Pods: pods, CPU: last.CPU / time.Duration(2*flips)})
	return nil
}
