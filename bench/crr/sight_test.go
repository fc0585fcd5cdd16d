package main

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

func on(node string) func(sighting[*corev1.Pod]) bool {
	return func(s sighting[*corev1.Pod]) bool { return s.object.Spec.NodeName == node }
}

func TestSightsKeepTheTimeOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen, events := newSights[*corev1.Pod](), watch.NewFake()
		followed := make(chan error, 1)
		go func() { followed <- seen.follow(ctx, events) }()
		began := time.Now()
		later := seen.expect("web", on("b"))
		events.Add(named("web", "a"))
		synctest.Wait()
		time.Sleep(time.Second)
		events.Modify(named("db", "b"))
		events.Modify(named("web", "b"))
		synctest.Wait()
		time.Sleep(time.Hour) // whoever waits may look late
		got, err := await(ctx, "web", later)
		if err != nil || got.at.Sub(began) != time.Second {
			t.Errorf("seen after %s, %v; want 1s", got.at.Sub(began), err)
		}
		if got := <-seen.expect("web", on("b")); got.at.Sub(began) != time.Second {
			t.Errorf("what holds already was seen after %s, want 1s", got.at.Sub(began))
		}
		events.Delete(named("web", "b"))
		synctest.Wait()
		if got := <-seen.expect("web", on("b")); !got.gone {
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
	if err := newSights[*corev1.Pod]().follow(t.Context(), events); err == nil {
		t.Error("a watch that has ended was taken for a quiet one")
	}
}

func TestAwaitGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := await(ctx, "nothing", make(chan int)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
