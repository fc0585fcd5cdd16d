package control

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// However many jobs a namespace has, the job of another one is handled next but one.
func TestJobsOfOneNamespaceDoNotKeepThoseOfAnotherWaiting(t *testing.T) {
	t.Parallel()
	queue := newTurns("", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	request := func(namespace string, i int) ctrl.Request {
		r := ctrl.Request{}
		r.Namespace, r.Name = namespace, fmt.Sprint(i)
		return r
	}
	for i := range 300 {
		queue.Add(request("mallory", i))
	}
	queue.Add(request("shop", 0))
	queue.Add(request("shop", 0)) // once
	queue.Add(request("bar", 0))
	queue.Add(request("shop", 1))
	var order []string
	for range 6 {
		next, _ := queue.Get()
		order = append(order, next.Namespace+next.Name)
		queue.Done(next)
		if next.Namespace == "mallory" {
			queue.Add(next) // as it does when a NodeImage changes
		}
	}
	if got := strings.Join(order, " "); got != "mallory0 shop0 bar0 mallory1 shop1 mallory2" {
		t.Errorf("%s", got)
	}
	if n := queue.Len(); n != 300 {
		t.Errorf("%d wait", n)
	}
}
