package node

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/identity"
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
		"it is being stopped by us":       {event(cri.EventStopped, "web", "busy"), nothing},
		"of a pod that has no request":    {event(cri.EventStopped, "idle", "1"), nothing},
		"of a pod that is not in a cache": {event(cri.EventStopped, "absent", "1"), nothing},
		"events may have been missed":     {cri.Event{Relist: true}, once},
	} {
		w, request := stopping(t, nil)
		request = request.DeepCopy()
		request.Spec.PodName, request.Labels = "web", map[string]string{v1beta1.LabelPodUID: "uid-web"}
		if err := w.requests.GetIndexer().Update(request); err != nil {
			t.Fatal(err)
		}
		idle := webPod()
		idle.Name, idle.UID = "idle", "uid-idle"
		for _, pod := range []any{webPod(), idle} {
			if err := w.pods.GetStore().Add(pod); err != nil {
				t.Fatal(err)
			}
		}
		w.acts.begin(request.UID, "app", w.containerID("busy"))
		w.ContainerEvent(tt.event)
		if got := w.queue.Len(); got != tt.want {
			t.Errorf("%s: %d looks, want %d", name, got, tt.want)
		}
	}
}

// After a relist only the requests that exist are remembered, and all of them are looked at.
func TestRelistLooksAtAllRequestsAndForgetsOthers(t *testing.T) {
	t.Parallel()
	w, request := stopping(t, nil)
	other := &crr.Request{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "uid-other"}}
	other.Spec.PodName = "db"
	if err := w.requests.GetIndexer().Add(other); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{request.UID, "uid-gone"} {
		w.acts.begin(uid, "app", identity.ContainerID{})
	}
	w.ContainerEvent(cri.Event{Relist: true})
	if got := w.queue.Len(); got != 2 {
		t.Errorf("%d looks, want one for each pod", got)
	}
	if len(w.acts.of(request.UID)) != 1 || len(w.acts.of("uid-gone")) != 0 {
		t.Error("want the acts of the request that exists, and no others")
	}
}

// The same action twice means that it had no effect; a touch of the pod has no visible effect.
func TestActsThatAreTheSame(t *testing.T) {
	t.Parallel()
	id := func(n string) identity.ContainerID { return identity.ContainerID{Runtime: "containerd", ID: n} }
	stop := func(n string) crr.Decision { return crr.Decision{Stop: &crr.Stop{ID: id(n)}} }
	remove := func(n ...string) crr.Decision {
		start := &crr.Start{}
		for _, one := range n {
			start.Remove = append(start.Remove, id(one))
		}
		return crr.Decision{Start: start}
	}
	if a := orderOf(stop("1")); a == "" || a != orderOf(stop("1")) || a == orderOf(stop("2")) || a == orderOf(remove("1")) {
		t.Errorf("stop: %q", a)
	}
	if a := orderOf(remove("1")); a == "" || a != orderOf(remove("1")) || a == orderOf(remove("1", "2")) {
		t.Errorf("removal: %q", a)
	}
	if a := orderOf(crr.Decision{Start: &crr.Start{Touch: true}}) + orderOf(crr.Decision{}); a != "" {
		t.Errorf("nudge: %q", a)
	}
}

// Its creation is by the API server's clock.
func TestDurationOfARequestIsByOneClock(t *testing.T) {
	t.Parallel()
	w, request := stopping(t, nil)
	registry, now := prometheus.NewRegistry(), time.Now()
	w.clockOffset = func() time.Duration { return time.Hour } // the API server's clock is ahead
	w.report = report.New(report.Config{Events: noEvents{}, Registry: registry, ClockOffset: w.clockOffset})
	request.CreationTimestamp = metav1.NewTime(now.Add(time.Hour - 5*time.Second))
	w.end(identity.Pod{Name: "web"}, request, crr.Status{}, now)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	took := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			took += metric.GetHistogram().GetSampleSum()
		}
	}
	if took != 5 || w.queue.Len() != 1 {
		t.Errorf("took %g s, and %d pods are looked at again", took, w.queue.Len())
	}
}
