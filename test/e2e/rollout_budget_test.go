package e2e_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// Whenever a pod becomes not ready, the status of the budget is for a moment the one of before.
func TestRestartKeepsADisruptionBudgetThatIsStricterThanMaxUnavailable(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 5)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "strict"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	s.check(s.Create(t.Context(), budget), "make PodDisruptionBudget")
	stop := s.unavailable("web")
	out, code := s.restart("deployment/web", "-c", "app", "--max-unavailable=100%")
	if most := stop(); code != 0 || most != 1 {
		t.Errorf("%d pods were not ready at a time, exit code %d:\n%s", most, code, out)
	}
}

// A StatefulSet creates the successor of a pod when that has ended; until then there is one pod less.
func TestRestartWaitsForThePodThatAStatefulSetLacks(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", stubborn))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(6))
	object := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	object.Spec.Replicas, object.Spec.PodManagementPolicy = new(int32(3)), appsv1.ParallelPodManagement
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	object.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: object.Spec.Selector.MatchLabels}, Spec: pod.Spec}
	s.check(s.Create(t.Context(), object), "make StatefulSet")
	s.await("pods of the StatefulSet", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("web"), object)
		return object.Status.ReadyReplicas == 3, err
	})
	var first corev1.Pod
	s.check(s.Get(t.Context(), s.key("web-0"), &first), "get pod web-0")
	s.check(s.Delete(t.Context(), &first), "delete pod web-0")
	if out, code := s.restart("statefulset/web", "-c", "app", "--wait=false"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	s.await("the next web-0 to be ready", func(ctx context.Context) (bool, error) {
		var requests v1beta1.ContainerRecreateRequestList
		if err := s.List(ctx, &requests, client.InNamespace(s.namespace)); err != nil {
			return false, err
		}
		var next corev1.Pod
		err := s.Get(ctx, s.key("web-0"), &next)
		ready := err == nil && next.UID != first.UID && condition(&next, corev1.PodReady) == corev1.ConditionTrue
		if !ready && len(requests.Items) > 0 {
			t.Fatalf("pod %s is restarted while there is no web-0", requests.Items[0].Spec.PodName)
		}
		return ready, client.IgnoreNotFound(err)
	})
	s.await("the restart of another pod", func(ctx context.Context) (bool, error) {
		var requests v1beta1.ContainerRecreateRequestList
		err := s.List(ctx, &requests, client.InNamespace(s.namespace))
		return len(requests.Items) > 0, err
	})
}
