package e2e_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

// TestDaemonMayWriteOnlyTheProbesOfItsNode plays a daemon that has been taken over.
func TestDaemonMayWriteOnlyTheProbesOfItsNode(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsTwoNodes(t)
	bound := s.as(s.token(systemNamespace, "refit-daemon", s.daemonOn(s.nodes[0])))
	unbound := s.as(s.token(systemNamespace, "refit-daemon", nil))
	of := func(node string) *v1alpha1.NodePodProbe {
		return &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	}
	for i, node := range s.nodes[:2] {
		pod := on(node, s.podOf(fmt.Sprint("web-", i), shell("app", obedient)))
		pod.Labels = map[string]string{"app": "web"}
		s.start(pod)
	}
	s.mark("web", "web", probing("up", "app", command("true")))
	for _, node := range s.nodes[:2] {
		s.await("NodePodProbe "+node, func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, client.ObjectKey{Name: node}, of(node))
			return err == nil, client.IgnoreNotFound(err)
		})
	}
	// What is allowed changes nothing: the real daemon is at work.
	nothing := merge(`{"status":{}}`)
	const policy = "ValidatingAdmissionPolicy"
	status := func(c client.Client, node string, patch client.Patch) func(context.Context) error {
		return func(ctx context.Context) error { return c.Status().Patch(ctx, of(node), patch) }
	}
	checkAccess(t, map[string]access{
		"status of its node":       {do: status(bound, s.nodes[0], nothing)},
		"status of another node":   {do: status(bound, s.nodes[1], nothing), words: []string{policy, s.nodes[1]}},
		"status, token of no node": {do: status(unbound, s.nodes[0], nothing), words: []string{policy}},
		"spec of its node": {do: func(ctx context.Context) error {
			return bound.Patch(ctx, of(s.nodes[0]), merge(`{"spec":{"podProbes":[]}}`))
		}, words: []string{"cannot patch"}},
		"deleting its own": {do: func(ctx context.Context) error { return bound.Delete(ctx, of(s.nodes[0])) }, words: []string{"cannot delete"}},
		"making one":       {do: func(ctx context.Context) error { return bound.Create(ctx, of("another")) }, words: []string{"cannot create"}},
		"making a marker": {do: func(ctx context.Context) error {
			return bound.Create(ctx, &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "m"}})
		}, words: []string{"podprobemarkers"}},
	})
}
