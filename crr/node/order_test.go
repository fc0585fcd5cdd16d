package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// slowInformer delivers a request late if a newer one of its pod was delivered before.
type slowInformer struct{ cache.SharedIndexInformer }

func (i *slowInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	newer := map[string]bool{}
	return i.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if r, ok := object.(*crr.Request); ok {
				if newer[r.Spec.PodName] {
					time.Sleep(200 * time.Millisecond)
				}
				newer[r.Spec.PodName] = strings.HasPrefix(r.Name, "newer")
			}
			handler.OnAdd(object, initial)
		},
		UpdateFunc: handler.OnUpdate, DeleteFunc: handler.OnDelete,
	})
}

// A daemon that started began the newer of two requests of a pod, because it had not followed the whole first list yet, which has
// no order. The second request finds that the container was restarted, and stops nothing.
func TestADaemonThatStartsBeginsTheOldestRequestOfEachPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(n *node) { n.slowRequests = true })
	n.stop()
	n.requestTwice(func(request *crr.Request) { n.requestSource.Add(request) })
	n.startDaemon()
	n.beganTheOlder()
}

// A daemon whose watch was interrupted began the newer of two requests that were both created meanwhile, because the list after the
// interruption has no order.
func TestADaemonWhoseWatchWasInterruptedBeginsTheOldestRequestOfEachPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(n *node) { n.slowRequests = true })
	n.requestTwice(func(request *crr.Request) { n.requestSource.AddDropWatch(request) })
	n.requestSource.ResetWatch()
	n.beganTheOlder()
}

const podsInOrder = 8

// requestTwice requests each of some pods to be restarted twice, a minute and a second ago.
func (n *node) requestTwice(create func(*crr.Request)) {
	created := func(before time.Duration) func(*crr.Request) {
		return func(r *crr.Request) { r.CreationTimestamp = metav1.NewTime(time.Now().Add(-before)) }
	}
	for i := range podsInOrder {
		pod := n.pod(fmt.Sprint("web-", i), fakecri.Container{Name: "app"})
		newer := n.newRequest(fmt.Sprint("newer-", i), pod, created(time.Second), "app")
		older := n.newRequest(fmt.Sprint("older-", i), pod, created(time.Minute), "app")
		n.mu.Lock()
		create(newer)
		create(older)
		n.mu.Unlock()
	}
}

// beganTheOlder fails unless the older request of each pod has stopped its container, and the newer has not.
func (n *node) beganTheOlder() {
	n.t.Helper()
	for i := range podsInOrder {
		for _, age := range []string{"older", "newer"} {
			name := fmt.Sprint(age, "-", i)
			n.ends(name)
			if stopped := n.current(name).Status.ContainerRecreateStates[0].StopBegan != nil; stopped != (age == "older") {
				n.t.Errorf("%s: stopped the container: %t", name, stopped)
			}
		}
	}
}
