package e2e_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// TestDaemonMayWriteOnlyTheImagesOfItsNode plays a daemon that has been taken over.
func TestDaemonMayWriteOnlyTheImagesOfItsNode(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsTwoNodes(t)
	bound := s.as(s.token(systemNamespace, "refit-daemon", s.daemonOn(s.nodes[0])))
	unbound := s.as(s.token(systemNamespace, "refit-daemon", nil))
	of := func(node string) *v1beta1.NodeImage {
		return &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node}}
	}
	for _, node := range s.nodes[:2] {
		s.await("NodeImage "+node, func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, client.ObjectKey{Name: node}, of(node))
			return err == nil, client.IgnoreNotFound(err)
		})
	}
	// What is allowed changes nothing: the real daemon is at work.
	nothing := merge(`{"status":{}}`)
	const policy = "ValidatingAdmissionPolicy"
	checkAccess(t, map[string]access{
		"status of its node": {do: func(ctx context.Context) error { return bound.Status().Patch(ctx, of(s.nodes[0]), nothing) }},
		"status of another node": {do: func(ctx context.Context) error { return bound.Status().Patch(ctx, of(s.nodes[1]), nothing) },
			words: []string{policy, s.nodes[1]}},
		"status, token of no node": {do: func(ctx context.Context) error { return unbound.Status().Patch(ctx, of(s.nodes[0]), nothing) },
			words: []string{policy}},
		"spec of its node": {do: func(ctx context.Context) error {
			return bound.Patch(ctx, of(s.nodes[0]), merge(`{"spec":{"images":{}}}`))
		}, words: []string{"cannot patch"}},
		"deleting its own": {do: func(ctx context.Context) error { return bound.Delete(ctx, of(s.nodes[0])) }, words: []string{"cannot delete"}},
		"creating one":     {do: func(ctx context.Context) error { return bound.Create(ctx, of("another")) }, words: []string{"cannot create"}},
		"creating a job": {do: func(ctx context.Context) error {
			job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "job"}}
			job.Spec.Image = image
			return bound.Create(ctx, job)
		}, words: []string{"imagepulljobs"}},
	})
}
