package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// unlabel removes the label as others do. It reports whether there was one.
func (w *world) unlabel() bool {
	w.t.Helper()
	d := w.deployment()
	labelled := d.Labels[v1alpha1.LabelHoldUID] != ""
	delete(d.Labels, v1alpha1.LabelHoldUID)
	if labelled {
		w.check(w.Update(w.t.Context(), d))
	}
	return labelled
}

// A controller that writes all labels of the Deployment removes the label in answer to each write.
func TestLabelThatIsRemovedEachTimeIsSetMoreSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	removed := 0
	for range 600 {
		if w.unlabel() {
			removed++
		}
		w.reconcile("web")
		w.now = w.now.Add(time.Second)
	}
	if removed < 3 || removed > 10 {
		t.Errorf("the label was set %d times in 10 minutes", removed)
	}
	w.now = w.now.Add(lastLook)
	if w.reconcile("web"); w.deployment().Labels[v1alpha1.LabelHoldUID] == "" {
		t.Error("the label is not set again")
	}
}

func TestLabelThatIsRemovedFromTimeToTimeIsSetAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.now = w.now.Add(2 * time.Minute)
		w.unlabel()
		if w.reconcile("web"); w.deployment().Labels[v1alpha1.LabelHoldUID] == "" {
			t.Fatalf("the label is missing after it was removed %d times", i+1)
		}
	}
}

// An admission policy of the cluster may allow only some labels.
func TestRefusedLabelIsWrittenMoreSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unlabel()
	w.r.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, ok := object.(*appsv1.Deployment); ok {
				return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, object.GetName(), errors.New("label is not allowed"))
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	refused := 0
	for range 600 {
		if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}); apierrors.IsForbidden(err) {
			refused++
		}
		w.now = w.now.Add(time.Second)
	}
	if refused < 1 || refused > 10 {
		t.Errorf("%d reconciliations of 600 have failed", refused)
	}
}

// The finalizer of the policy was removed by hand: nobody would release the workload if the API server held it.
func TestLabelIsRemovedFromAWorkloadWithoutAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alone := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alone", UID: "uid-alone", Labels: map[string]string{v1alpha1.LabelHoldUID: "uid-alone"}}}
	w.check(w.Create(t.Context(), alone))
	w.r.unlabelOrphansOf(t.Context(), "Deployment")
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(alone), alone))
	if alone.Labels[v1alpha1.LabelHoldUID] != "" {
		t.Errorf("labels %v of a Deployment without a policy", alone.Labels)
	}
	if labels := w.deployment().Labels; labels[v1alpha1.LabelHoldUID] == "" {
		t.Errorf("labels %v of a Deployment with a policy", labels)
	}
}
