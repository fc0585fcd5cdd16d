package control

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// A job waited for the API server once for each node, one node after another.
func TestJobStartsOnSeveralNodesAtTheSameTime(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	w := newWorld(t, node("a", nil), node("b", nil), node("c", nil), pullJob(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromInt32(3)) }))
	for _, name := range names {
		w.reconcile((&nodeImages{w.api}).Reconcile, node(name, nil))
	}
	var written sync.WaitGroup
	written.Add(len(names))
	all := make(chan struct{})
	go func() { defer close(all); written.Wait() }()
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			written.Done()
			select {
			case <-all:
			case <-time.After(10 * time.Second):
				return errors.New("no other NodeImage is written meanwhile")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	w.reconcile((&jobs{w.api}).Reconcile, pullJob())
	for _, name := range names {
		if len(w.nodeImage(name).Spec.Images) != 1 {
			t.Errorf("the image is not pulled on node %s: %s", name, w.job("j").Status.Message)
		}
	}
}
