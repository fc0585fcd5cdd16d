package control

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
)

// liveLists counts the lists that the API server is asked for.
type liveLists struct {
	client.Reader
	lists int
	after func() // is called after a list has been answered; nil for nothing
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.lists++
	err := l.Reader.List(ctx, list, options...)
	if l.after != nil {
		l.after()
	}
	return err
}

// updatedPod is the one with the new image.
func (w *world) updatedPod() *corev1.Pod {
	w.t.Helper()
	for _, pod := range w.pods() {
		if pod.Spec.Containers[1].Image == "log:2" {
			return &pod
		}
	}
	w.t.Fatal("no pod has been updated")
	return nil
}

func TestPodThatTheCacheShowsReadyCountsAgainstTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	w.change(image("log:2"))
	w.look()
	w.kubelet()
	w.now = w.now.Add(time.Second)
	for _, s := range w.r.all() {
		w.check(w.r.observeAll(t.Context(), s)) // the cache shows the pod updated and ready
	}
	old := w.updatedPod()
	unavailable := old.DeepCopy()
	unavailable.Status.Conditions[0].Status = corev1.ConditionFalse
	w.check(w.Status().Update(t.Context(), unavailable)) // which no event tells
	w.reconcile()
	if got := w.images(); got["log:2"] != 1 {
		t.Fatalf("%v while the updated pod is not ready", got)
	}
	if changed, err := w.r.observe(t.Context(), w.r.find("logs"), old); err != nil || changed {
		t.Errorf("a late event from before changes what is known: %v", err)
	}
	w.rounds(8)
	if got := w.images(); got["log:2"] != 3 {
		t.Errorf("%v after the pod has become ready", got)
	}
}

// The cache lags behind: the pod of a StatefulSet was created again, as the API server has said, and the events come of the one before.
func TestLateEventsOfAPodThatWasCreatedAgainChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	s, old := w.r.find("logs"), w.pods()[0]
	again := old.DeepCopy()
	again.UID, again.ResourceVersion = "again", old.ResourceVersion+"00"
	again.Status.Conditions[0].Status = corev1.ConditionFalse
	if _, err := w.r.observe(t.Context(), s, again); err != nil {
		t.Fatal(err)
	}
	s.seen(again)
	ending := old.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: w.now}
	for _, late := range []*corev1.Pod{&old, ending} {
		changed, err := w.r.observe(t.Context(), s, late)
		if got, _ := s.fleet.Get(client.ObjectKeyFromObject(again)); err != nil || changed || got.UID != again.UID || got.Ready {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestPodsAreReadFromTheAPIServerOnceForEachBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	live := &liveLists{Reader: w.Client}
	w.r.Live = live
	w.look()
	w.look()
	if live.lists != 0 {
		t.Fatalf("%d lists without an update", live.lists)
	}
	w.change(image("log:2"))
	w.rounds(8)
	if got := w.images(); got["log:2"] != 3 || live.lists != 3 {
		t.Errorf("%v, %d lists for 3 batches", got, live.lists)
	}
}

func TestPodsAreNotReadWhileEventsCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	live := &liveLists{Reader: w.Client}
	w.r.Live = live
	w.look()
	w.change(image("log:2"))
	pod := &w.pods()[0]
	events := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer events.ShutDown()
	w.r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, events)
	w.look()
	if got := w.images(); got["log:2"] != 1 || live.lists != 0 {
		t.Errorf("%v, %d lists after an event", got, live.lists)
	}
	w.now = w.now.Add(3 * time.Second)
	w.rounds(1)
	if got := w.images(); got["log:2"] != 2 || live.lists != 1 {
		t.Errorf("%v, %d lists when no event has come for 3 s", got, live.lists)
	}
}

func TestPodThatIsDeletedWhilePodsAreReadStaysForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	gone := w.pods()[0]
	live := &liveLists{Reader: w.Client}
	live.after = func() {
		live.after = nil
		w.check(w.Delete(t.Context(), &gone))
		w.r.find("logs").remove(client.ObjectKeyFromObject(&gone), gone.UID)
	}
	w.r.Live = live
	w.change(image("log:2"))
	w.rounds(8)
	if s := w.set().Status; s.MatchedPods != 2 || s.UpdatedReadyPods != 2 {
		t.Errorf("%+v", s)
	}
}

// An event that comes after our write may be from before it. It would show a pod that is being updated as one that is to be.
func TestEventFromBeforeAWriteIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	before := map[string]*corev1.Pod{}
	for _, pod := range w.pods() {
		before[pod.Name] = &pod
	}
	w.change(image("log:2"))
	w.reconcile()
	written := w.updatedPod().Name
	if w.updated(before[written]) {
		t.Error("it changes what is known")
	}
	if w.reconcile(); w.images()["log:2"] != 1 {
		t.Errorf("%v", w.images())
	}
	w.change(func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.Paused = true })
	w.reconcile()
	if w.updated(before[written]) {
		t.Error("it changes what is known after the spec has changed")
	}
}
