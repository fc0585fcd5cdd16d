package nodewrite

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// Eight workers that came back from one slow write began the next one with a single change: the others waited for two writes.
func TestChangesThatComeSoonAfterASlowWriteAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := v1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		writes := 0
		slow := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			writes++
			time.Sleep(2 * time.Second)
			return c.Patch(ctx, o, p, options...)
		}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}).WithInterceptorFuncs(slow).Build()
		var w Writer
		add := func(key string) {
			err := w.Write(t.Context(), c, c, "a", func(n *v1beta1.NodeImage) bool {
				if n.Labels == nil {
					n.Labels = map[string]string{}
				}
				n.Labels[key] = "x"
				return true
			})
			if err != nil {
				t.Error(err)
			}
		}
		add("first")
		start := time.Now()
		var all sync.WaitGroup
		for i, key := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				add(key)
			})
		}
		all.Wait()
		if took := time.Since(start); writes != 2 || took > 2500*time.Millisecond {
			t.Errorf("%d writes, the last four changes in %s", writes, took)
		}
	})
}
