package configchanges

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// kubectl delete --cascade=orphan leaves a trigger without owner, which nothing would delete.
func TestWorkloadThatWasDeletedWithoutItsTriggerAndCreatedAgainIsWatched(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, a.trigger(), func(o *v1alpha1.RestartTrigger) { o.OwnerReferences = nil })
	edit(a, &appsv1.Deployment{ObjectMeta: deployment().ObjectMeta}, func(o *appsv1.Deployment) { o.UID = "again" })
	again := deployment()
	again.UID = "again"
	if _, err := a.reconciler.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(a.trigger(), again) {
		t.Fatalf("%+v", a.trigger())
	}
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.settle()
	if len(a.rollouts()) != 1 {
		t.Errorf("%d rollouts", len(a.rollouts()))
	}
}
