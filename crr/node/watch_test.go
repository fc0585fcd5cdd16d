package node

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// Processing a pod costs calls of the runtime: events that bring nothing new, and events of pods without a request,
// cause none.
func TestEventsOfTheRuntimeThatCauseALook(t *testing.T) {
	t.Parallel()
	const nothing, once = 0, 1
	event := func(kind cri.EventType, pod, id string) cri.Event {
		return cri.Event{Type: kind, ContainerID: id, PodNamespace: "shop", PodName: pod}
	}
	for name, tt := range map[string]struct {
		event cri.Event
		want  int
	}{
		"a container has ended":           {event(cri.EventStopped, "web", "1"), once},
		"a container was removed":         {event(cri.EventDeleted, "web", "1"), once},
		"a container was created":         {event(cri.EventCreated, "web", "1"), nothing},
		"a container has started":         {event(cri.EventStarted, "web", "1"), nothing},
		"of a pod that has no request":    {event(cri.EventStopped, "idle", "1"), nothing},
		"of a pod that is not in a cache": {event(cri.EventStopped, "absent", "1"), nothing},
		"events may have been missed":     {cri.Event{Relist: true}, once},
	} {
		w := idleWorker(t)
		w.engine.Put(podOf(requestOf("web")), requestOf("web"))
		idle := webPod()
		idle.Name, idle.UID = "idle", "uid-idle"
		for _, pod := range []any{webPod(), idle} {
			if err := w.pods.GetStore().Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		w.ContainerEvent(tt.event)
		if got := w.queue.Len(); got != tt.want {
			t.Errorf("%s: %d looks, want %d", name, got, tt.want)
		}
	}
}

// held is a runtime and an API server on which a stop has begun and does not end.
type held struct {
	listing
	begun, release chan struct{}
}

func (h *held) StopContainer(context.Context, string, time.Duration) error {
	close(h.begun)
	<-h.release
	return nil
}

func (h *held) KeepsConditions() bool { return true }

func (h *held) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	request = request.DeepCopy()
	request.Status = status
	return request, nil
}

func (h *held) Annotate(context.Context, *crr.Request, string, string) (*crr.Request, error) {
	return nil, errors.New("not expected")
}

// The end of a stop is followed by the next look anyway.
func TestEventOfAStopInProgressCausesNoLook(t *testing.T) {
	t.Parallel()
	h := &held{begun: make(chan struct{}), release: make(chan struct{})}
	h.containers = []cri.Container{listed("1", "app", "web", identity.StateRunning)}
	config := configOf(h)
	config.RequestAPI = h
	w, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.queue.ShutDown)
	if err := w.pods.GetStore().Add(webPod()); err != nil {
		t.Fatal(err)
	}
	request := requestOf("web")
	request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: fakecri.Name + "://1"}},
	}
	w.engine.Put(podOf(request), request)
	if _, err := w.engine.Next(t.Context(), podOf(request)); err != nil {
		t.Fatal(err)
	}
	<-h.begun
	for id, want := range map[string]int{"1": 0, "2": 1} {
		w.ContainerEvent(cri.Event{Type: cri.EventStopped, ContainerID: id, PodNamespace: "shop", PodName: "web"})
		if got := w.queue.Len(); got != want {
			t.Errorf("event of instance %s: %d looks, want %d", id, got, want)
		}
		for w.queue.Len() > 0 {
			key, _ := w.queue.Get()
			w.queue.Done(key)
		}
	}
	close(h.release)
	w.engine.Wait()
}

// After a relist the pods of all requests are looked at.
func TestRelistLooksAtAllRequests(t *testing.T) {
	t.Parallel()
	w := idleWorker(t)
	for _, request := range []*crr.Request{requestOf("web"), requestOf("db")} {
		w.engine.Put(podOf(request), request)
	}
	w.ContainerEvent(cri.Event{Relist: true})
	if got := w.queue.Len(); got != 2 {
		t.Errorf("%d looks, want one for each pod", got)
	}
}

// idleWorker is a worker that does not run.
func idleWorker(t *testing.T) *Worker {
	t.Helper()
	w, err := New(configOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.queue.ShutDown)
	return w
}

func requestOf(pod string) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "again-" + pod, UID: types.UID("uid-again-" + pod), Labels: map[string]string{v1beta1.LabelPodUID: "uid-" + pod},
	}}
	request.Spec.PodName = pod
	return request
}
