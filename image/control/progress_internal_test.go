package control

import (
	"context"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestTheStatusOfARunningJobIsSeldomWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), node("b", nil), node("c", nil), pullJob())
	w.api.interval = progressInterval
	writes := 0
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if _, ok := object.(*v1beta1.ImagePullJob); ok {
				writes++
			}
			return c.SubResource(sub).Update(ctx, object, options...)
		},
	})
	look := func() ctrl.Result {
		t.Helper()
		result, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "j"}})
		w.check(err)
		return result
	}
	w.look()
	began := writes
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	if result := look(); writes != began || result.RequeueAfter != progressInterval {
		t.Errorf("a node has the image: %d statuses, another look after %s", writes-began, result.RequeueAfter)
	}
	w.now = w.now.Add(progressInterval)
	if look(); writes != began+1 || w.job("j").Status.Succeeded != 1 {
		t.Errorf("after %s: %d statuses, %+v", progressInterval, writes-began, w.job("j").Status)
	}
	w.now = w.now.Add(progressInterval / 2)
	w.daemon("b", v1beta1.ImagePhaseSucceeded)
	look()
	w.daemon("c", v1beta1.ImagePhaseSucceeded)
	if look(); writes != began+2 || w.job("j").Status.CompletionTime == nil || w.job("j").Status.Succeeded != 3 {
		t.Errorf("all nodes have the image: %d statuses, %+v", writes-began, w.job("j").Status)
	}
	w.now = w.now.Add(time.Minute)
	if look(); writes != began+2 {
		t.Errorf("an ended job was written %d times", writes-began-2)
	}
}
