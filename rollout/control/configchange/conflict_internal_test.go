package configchange

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/conflict"
)

func TestRolloutIsNotRepeatedWhenItsRecordCouldNotBeWritten(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	for len(a.rollouts()) == 0 {
		result, err := conflict.Reconciler(a.reconciler).Reconcile(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if a.now = a.now.Add(result.RequeueAfter); a.trigger().Status.Pending != nil && a.trigger().Status.Pending.RefreshTime != nil {
			a.fail = apierrors.NewConflict(v1alpha1.GroupVersion().WithResource("restarttriggers").GroupResource(), "web", errors.New("other writer"))
		}
	}
	a.fail = nil
	a.settle()
	if len(a.rollouts()) != 1 || a.trigger().Status.Rollouts != 1 || a.trigger().Status.Pending != nil {
		t.Errorf("%d rollouts, %+v", len(a.rollouts()), a.trigger().Status)
	}
}
