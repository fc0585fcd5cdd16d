package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache"
)

// meter adds up for how long how many of the wanted pods are missing: not ready, or not there.
type meter struct {
	changes apiwatch.Interface
	ended   chan struct{}
	wanted  int

	mu      sync.Mutex
	ready   map[types.UID]bool
	missing time.Duration // of all pods together
	since   time.Time     // of the last change
	created int
}

func (b *bench) watch(ctx context.Context, wanted int) (*meter, error) {
	var list corev1.PodList
	if err := b.API.List(ctx, &list, client.InNamespace(b.Namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	m := &meter{ended: make(chan struct{}), wanted: wanted, ready: map[types.UID]bool{}, since: time.Now()}
	for i := range list.Items {
		if cache.IsReady(&list.Items[i]) {
			m.ready[list.Items[i].UID] = true
		}
	}
	var err error
	from := &client.ListOptions{Namespace: b.Namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	if m.changes, err = b.API.Watch(ctx, &corev1.PodList{}, from); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go m.follow()
	return m, nil
}

func (m *meter) stop() {
	m.changes.Stop()
	<-m.ended
}

func (m *meter) follow() {
	defer close(m.ended)
	for event := range m.changes.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			m.note(event.Type, pod)
		}
	}
}

func (m *meter) note(kind apiwatch.EventType, pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add()
	if kind == apiwatch.Added {
		m.created++
	}
	if kind != apiwatch.Deleted && cache.IsReady(pod) {
		m.ready[pod.UID] = true
	} else {
		delete(m.ready, pod.UID)
	}
}

// add counts the time since the last change. The caller holds the lock.
func (m *meter) add() {
	now := time.Now()
	m.missing += now.Sub(m.since) * time.Duration(max(0, m.wanted-len(m.ready)))
	m.since = now
}

// read returns what was counted so far, and how many pods were created.
func (m *meter) read() (unavailable time.Duration, created int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add()
	return m.missing, m.created
}
