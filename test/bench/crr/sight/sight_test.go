package sight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func named(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

func on(node string) func(Sighting[*corev1.Pod]) bool {
	return func(s Sighting[*corev1.Pod]) bool { return s.Object.Spec.NodeName == node }
}

func TestSightsKeepTheTimeOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen, events := New[*corev1.Pod](), watch.NewFake()
		followed := make(chan error, 1)
		go func() { followed <- seen.Follow(ctx, events) }()
		began := time.Now()
		later := seen.Expect("web", on("b"))
		events.Add(named("web", "a"))
		synctest.Wait()
		time.Sleep(time.Second)
		events.Modify(named("db", "b"))
		events.Modify(named("web", "b"))
		synctest.Wait()
		time.Sleep(time.Hour) // whoever waits may look late
		got, err := Await(ctx, "web", later)
		if err != nil || got.At.Sub(began) != time.Second {
			t.Errorf("seen after %s, %v; want 1s", got.At.Sub(began), err)
		}
		if got := <-seen.Expect("web", on("b")); got.At.Sub(began) != time.Second {
			t.Errorf("what holds already was seen after %s, want 1s", got.At.Sub(began))
		}
		events.Delete(named("web", "b"))
		synctest.Wait()
		if got := <-seen.Expect("web", on("b")); !got.Gone {
			t.Error("the deletion was not seen")
		}
		cancel()
		if err := <-followed; err != nil {
			t.Errorf("follow: %v", err)
		}
	})
}

func TestSightsReportALostWatch(t *testing.T) {
	t.Parallel()
	events := watch.NewFake()
	events.Stop()
	if err := New[*corev1.Pod]().Follow(t.Context(), events); err == nil {
		t.Error("a watch that has ended was taken for a quiet one")
	}
}

func TestAwaitGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Await(ctx, "nothing", make(chan int)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
