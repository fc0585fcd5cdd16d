package configchange

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/stalecache"
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

func TestTriggerThatWasCreatedAgainIsNotDeletedFromTheCache(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, deployment(), func(o *appsv1.Deployment) { o.Annotations = nil })
	stale := a.trigger()
	edit(a, a.trigger(), func(o *v1alpha1.RestartTrigger) { o.UID = "another" })
	a.reconciler.client = stalecache.Client{Client: a, Object: stale}
	if _, err := a.reconciler.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("%v, want a conflict, after which it is looked at again", err)
	}
	if a.trigger() == nil {
		t.Error("it was deleted")
	}
}

// Kubernetes deletes the objects of a namespace in any order: a trigger that goes before its workload cannot be created again.
func TestNoTriggerIsCreatedInANamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	refused := apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource(v1alpha1.ResourceRestartTrigger).GroupResource(), "web", errors.New("the namespace is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	a.reconciler.client = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
	})
	if result, err := a.reconciler.Reconcile(t.Context(), key); err != nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v: the workload is looked at again and again", result, err)
	}
}
