package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/fakenodes"
	"github.com/refit-project/refit/test/bench/testcluster"
)

func (b *bench) scenario(ctx context.Context) error {
	err := b.Step(ctx, "SidecarSets without pods", 2*(b.sets+1), b.create, b.counted(0)) // a ControllerRevision and a status each
	if err != nil {
		return err
	}
	if err := b.Grow(ctx, fakenodes.Growth{Flips: b.flips, Populate: b.populate, Pods: b.podNames, Counted: b.counted}); err != nil {
		return err
	}
	for _, s := range []struct {
		name    string
		changes int // objects that have to be written, at least
		do      func(context.Context) error
		done    func(context.Context) (bool, error)
	}{
		{"nothing changes", 0, func(ctx context.Context) error { return wait.For(ctx, b.Quiet) }, nil},
		{rollout, b.Pods, func(ctx context.Context) error { return b.setImages(ctx, b.sets, "agent:2") }, b.counted(b.Pods)},
		{"refit-manager restarted, one SidecarSet changed", b.Pods / b.sets, b.restartManager, b.counted(b.Pods)},
	} {
		if err := b.Step(ctx, s.name, s.changes, s.do, s.done); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// rollout is the step that the target of writes is for.
const rollout = "all SidecarSets rolled out"

// podNames returns the names of the pods that may flip.
func (b *bench) podNames(context.Context) ([]types.NamespacedName, error) {
	names := make([]types.NamespacedName, min(b.flips, b.Pods))
	for i := range names {
		names[i] = types.NamespacedName{Namespace: b.Cluster.Name, Name: b.pod(i)}
	}
	return names, nil
}

// setImages changes the image of the first n SidecarSets.
func (b *bench) setImages(ctx context.Context, n int, image string) error {
	return testcluster.Each(ctx, n, func(ctx context.Context, i int) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			var set v1beta1.SidecarSet
			if err := b.Cluster.API.Get(ctx, client.ObjectKey{Name: setName(i)}, &set); err != nil {
				return err
			}
			set.Spec.Containers[0].Image = image
			return b.Cluster.API.Update(ctx, &set)
		})
	})
}

// restartManager stops refit-manager, changes a SidecarSet, and notes how long the next one takes until it has seen that: then
// it has taken all pods in.
func (b *bench) restartManager(ctx context.Context) error {
	b.Manager.Stop()
	if err := b.setImages(ctx, 1, "agent:3"); err != nil {
		return err
	}
	began := time.Now()
	if err := b.StartManager(ctx); err != nil {
		return err
	}
	err := testcluster.Await(ctx, testcluster.PollInterval, time.Minute, "the changed SidecarSet to be seen", func(ctx context.Context) (bool, error) {
		var set v1beta1.SidecarSet
		err := b.followed.Get(ctx, client.ObjectKey{Name: setName(0)}, &set)
		return err == nil && set.Status.ObservedGeneration == set.Generation, err
	})
	b.restart = time.Since(began)
	return err
}
