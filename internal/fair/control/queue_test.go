package control_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
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

// The workers that reconcile a tenant's objects may all wait for the same slow write. Another tenant's object does not wait for them.
func TestNamespaceLeavesWorkersToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := control.Limited(2)("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
		var all sync.WaitGroup
		defer all.Wait()
		defer queue.ShutDown()
		var mu sync.Mutex
		began := map[string]time.Duration{}
		running, most, start := 0, 0, time.Now()
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		for range 4 {
			all.Go(func() {
				for {
					item, ended := queue.Get()
					if ended {
						return
					}
					mu.Lock()
					began[item.String()] = time.Since(start)
					mu.Unlock()
					if item.Namespace == "hostile" {
						count(1)
						time.Sleep(time.Second)
						count(-1)
					}
					queue.Done(item)
				}
			})
		}
		for i := range 10 {
			queue.Add(request("hostile", fmt.Sprint("pull-", i)))
		}
		time.Sleep(100 * time.Millisecond)
		queue.Add(request("other", "pull"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most != 2 || began["other/pull"] != 100*time.Millisecond {
			t.Errorf("%d objects of one namespace at a time, the other one after %s", most, began["other/pull"])
		}
		if len(began) != 11 || began["hostile/pull-9"] != 4*time.Second {
			t.Errorf("%d were reconciled, the last one after %s", len(began), began["hostile/pull-9"])
		}
	})
}

// One worker is enough for every namespace, and one namespace never has all of several.
func TestShareOfOneNamespace(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{1: 1, 2: 1, 4: 1, 8: 2, 40: 10} {
		if got := control.Share(workers); got != want {
			t.Errorf("%d of %d workers, want %d", got, workers, want)
		}
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
