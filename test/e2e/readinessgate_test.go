package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// A pod of a namespace that asks for it gets the readiness gate, becomes ready, and is drained before its container is stopped. Pods
// that exist, and pods of other namespaces, are as their owners made them.
func TestANamespaceAsksForReadinessGates(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	older := s.start(s.podOf("older", shell("app", obedient)))
	if len(older.Spec.ReadinessGates) > 0 {
		t.Fatalf("a pod of a namespace without the label has %+v", older.Spec.ReadinessGates)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1beta1.LabelReadinessGate+`":"enabled"}}}`))
	s.check(s.Patch(t.Context(), namespace, label), "label the namespace")

	// The API server learns of the label by a watch.
	probe := s.podOf("probe", shell("app", obedient))
	s.await("pods of the namespace to get the gate", func(ctx context.Context) (bool, error) {
		tried := probe.DeepCopy()
		err := s.Create(ctx, tried, client.DryRunAll)
		return err == nil && len(tried.Spec.ReadinessGates) == 1, err
	})
	s.start(s.podOf("web", shell("app", obedient)))
	web := s.awaitPod("web", "to be ready", podReady)
	if gates := web.Spec.ReadinessGates; len(gates) != 1 || gates[0].ConditionType != v1beta1.ReadinessGateKruisePodReady {
		t.Errorf("readiness gates %+v", gates)
	}
	s.ask("restart", "web/app", strategy(v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(5))}))
	s.awaitPod("web", "to be drained", func(pod *corev1.Pod) bool {
		return condition(pod, v1beta1.ReadinessGateKruisePodReady) == corev1.ConditionFalse && !podReady(pod)
	})
	s.untouched(web, "app")
	s.succeeded("restart")
	s.awaitPod("web", "to be ready again", podReady)
	if older := s.pod("older"); len(older.Spec.ReadinessGates) > 0 {
		t.Errorf("a pod that existed has %+v", older.Spec.ReadinessGates)
	}
}
