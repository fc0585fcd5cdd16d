package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher adds up for how long each pod is not ready, from the first event that says so to the one that says otherwise.
type watcher struct {
	changes apiwatch.Interface
	ended   chan struct{}

	mutex sync.Mutex
	since map[string]time.Time
	total map[string]time.Duration
	// addresses of the pods that have had each name, the newest last
	addresses map[string][]string
}

func (c *cluster) watch(ctx context.Context) (*watcher, error) {
	changes, err := c.API.Watch(ctx, &corev1.PodList{}, client.InNamespace(c.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	w := &watcher{changes: changes, ended: make(chan struct{}), since: map[string]time.Time{}, total: map[string]time.Duration{}, addresses: map[string][]string{}}
	go w.follow()
	return w, nil
}

func (w *watcher) stop() {
	w.changes.Stop()
	<-w.ended
}

func (w *watcher) follow() {
	defer close(w.ended)
	for event := range w.changes.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		w.mutex.Lock()
		if ip := pod.Status.PodIP; ip != "" && !slices.Contains(w.addresses[pod.Name], ip) {
			w.addresses[pod.Name] = append(w.addresses[pod.Name], ip)
		}
		since, down := w.since[pod.Name]
		switch up := event.Type != apiwatch.Deleted && ready(pod); {
		case up && down:
			w.total[pod.Name] += time.Since(since)
			delete(w.since, pod.Name)
		case !up && !down:
			w.since[pod.Name] = time.Now()
		}
		w.mutex.Unlock()
	}
}

func (w *watcher) addressesOf(pod string) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.addresses[pod])
}

// settled waits until n pods have been down and all are up again.
func (w *watcher) settled(ctx context.Context, n int) ([]time.Duration, error) {
	var downs []time.Duration
	err := await(ctx, "all pods to be ready again", func(context.Context) (bool, error) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		downs = slices.Collect(maps.Values(w.total))
		return len(downs) == n && len(w.since) == 0, nil
	})
	return downs, err
}
