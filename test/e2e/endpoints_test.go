package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service makes one of the same name for the pods with that value of the label app.
func (s *fixture) service(app string) {
	s.t.Helper()
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: app}}
	object.Spec.Selector, object.Spec.Ports = map[string]string{"app": app}, []corev1.ServicePort{{Port: 8080}}
	s.check(s.Create(s.t.Context(), object), "make Service %s", app)
}

// endpoints is how many ready endpoints a Service has had, as a client sees them: in its EndpointSlices.
type endpoints struct {
	s     *fixture
	began time.Time
	end   func()

	mu      sync.Mutex
	history []reading
}

type reading struct {
	at    time.Time
	ready int
}

// watchEndpoints follows the EndpointSlices of a Service until stop is called.
func (s *fixture) watchEndpoints(service string) *endpoints {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	changes, err := s.Watch(ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	s.check(err, "watch EndpointSlices")
	e := &endpoints{s: s, began: time.Now()}
	var done sync.WaitGroup
	done.Go(func() { e.follow(changes) })
	e.end = sync.OnceFunc(func() {
		changes.Stop()
		cancel()
		done.Wait()
	})
	s.t.Cleanup(e.end)
	return e
}

func (e *endpoints) follow(changes watch.Interface) {
	ready := map[string]int{} // by slice
	for event := range changes.ResultChan() {
		slice, ok := event.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		if delete(ready, slice.Name); event.Type != watch.Deleted {
			ready[slice.Name] = readyIn(slice)
		}
		sum := 0
		for _, n := range ready {
			sum += n
		}
		e.mu.Lock()
		e.history = append(e.history, reading{at: time.Now(), ready: sum})
		e.mu.Unlock()
	}
}

func readyIn(slice *discoveryv1.EndpointSlice) (n int) {
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			n++
		}
	}
	return n
}

func (e *endpoints) now() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.history) == 0 {
		return 0
	}
	return e.history[len(e.history)-1].ready
}

// await waits until the Service has so many ready endpoints.
func (e *endpoints) await(n int) {
	e.s.t.Helper()
	e.s.await(fmt.Sprintf("%d ready endpoints", n), func(context.Context) (bool, error) { return e.now() == n, nil })
}

// least is how few ready endpoints there have been since there were n. It ends the watch, and writes its history to the log if the
// test fails.
func (e *endpoints) least(n int) int {
	e.s.t.Helper()
	e.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines strings.Builder
	least, reached := n, false
	for _, r := range e.history {
		fmt.Fprintf(&lines, "%6.1fs %d\n", r.at.Sub(e.began).Seconds(), r.ready)
		if reached = reached || r.ready >= n; reached {
			least = min(least, r.ready)
		}
	}
	e.s.t.Cleanup(func() {
		if e.s.t.Failed() {
			e.s.t.Logf("ready endpoints:\n%s", lines.String())
		}
	})
	if !reached {
		e.s.t.Errorf("there have never been %d ready endpoints", n)
	}
	return least
}
