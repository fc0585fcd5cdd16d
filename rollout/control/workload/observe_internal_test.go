package workload

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Comparing the quantity 1e2147483647 would take minutes, or panic.
func TestTemplateThatIsOutOfBoundsIsReportedOnThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1e2147483647")}
	})
	w.reconcile("web")
	if got := w.condition("web", v1alpha1.ConditionAccepted); got != "False TargetNotReadable" {
		t.Errorf("Accepted is %q", got)
	}
	if labels := w.deployment().Labels; labels[v1alpha1.LabelHoldUID] != "" {
		t.Errorf("labels %v: the API server holds the next template, and nobody updates to it", labels)
	}
}

func TestWorkloadIsDeletedDuringAnUpdateOfAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"release": "2"} })
	w.reconcile("web")
	p := &v1alpha1.InPlaceUpdatePolicy{}
	w.check(w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, p))
	if p.Status.Update == nil || len(p.Status.Update.Annotations) == 0 {
		t.Fatalf("no update of annotations: %+v", p.Status.Update)
	}
	w.check(w.Delete(t.Context(), w.deployment()))
	w.rounds(10)
	if got := w.condition("web", v1alpha1.ConditionAccepted); got != "False TargetNotFound" {
		t.Errorf("Accepted is %q", got)
	}
}

// After an outage the cache may not have a PodDisruptionBudget yet.
func TestPodDisruptionBudgetThatTheCacheDoesNotShowIsRespected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w.check(w.Create(t.Context(), budget))
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok {
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	w.rounds(10)
	if got := w.condition("web", v1alpha1.ConditionProgressing); got != "True PodDisruptionBudget" {
		t.Errorf("Progressing is %q", got)
	}
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "app:1" {
			t.Errorf("%s was updated", pod.Name)
		}
	}
}
