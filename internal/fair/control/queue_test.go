package control_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/internal/fair/control"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// A tenant with 1,000 ImagePullJobs delayed the job of another one until all of them had been reconciled.
func TestNamespaceWithManyObjectsDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	queue := control.Queue("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	defer queue.ShutDown()
	for i := range 1000 {
		queue.Add(request("hostile", fmt.Sprint("pull-", i)))
	}
	queue.Add(request("other", "pull"))
	queue.Add(request("other", "pull")) // once
	for i := range 2 {
		item, _ := queue.Get()
		queue.Done(item)
		if want := []string{"hostile", "other"}[i]; item.Namespace != want {
			t.Errorf("turn %d is of %s, want %s", i, item, want)
		}
	}
	if n := queue.Len(); n != 999 {
		t.Errorf("%d are left", n)
	}
}

// An object that changes while it is reconciled is reconciled again.
func TestObjectThatChangesMeanwhileComesAgain(t *testing.T) {
	t.Parallel()
	queue := control.Queue("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	defer queue.ShutDown()
	queue.Add(request("shop", "a"))
	item, _ := queue.Get()
	if queue.Add(item); queue.Len() != 0 {
		t.Error("it is reconciled twice at a time")
	}
	queue.Done(item)
	queue.AddRateLimited(request("shop", "b"))
	for range 2 {
		item, _ := queue.Get()
		queue.Done(item)
	}
}
