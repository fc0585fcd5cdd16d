package workload

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/stale"
)

const (
	// believable is how long after an event of any pod the cache of pods is considered up to date: the watch works.
	believable = 2 * time.Second
	// forgotten is how long a written pod is kept that the cache never shows, because it was deleted.
	forgotten = time.Minute
)

// written are pods as they are after writes that the cache does not show yet. It is safe for concurrent use.
type written struct {
	mu   sync.Mutex
	pods map[types.UID]writtenPod
}

type writtenPod struct {
	pod *corev1.Pod // trimmed, as the cache will have it
	at  time.Time
}

// add records the result of a write.
func (w *written) add(stored *corev1.Pod, now time.Time) {
	pod := trimmer.Of(stored)
	if pod.UID == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods == nil {
		w.pods = map[types.UID]writtenPod{}
	}
	w.pods[pod.UID] = writtenPod{pod: pod, at: now}
}

// newest replaces cached pods that are older than the last write to them.
func (w *written) newest(pods []*corev1.Pod, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pods) == 0 {
		return
	}
	for i, cached := range pods {
		of, ok := w.pods[cached.UID]
		switch {
		case !ok:
		case stale.Older(cached.ResourceVersion, of.pod.ResourceVersion):
			pods[i] = of.pod
		default:
			delete(w.pods, cached.UID)
		}
	}
	for uid, of := range w.pods {
		if now.Sub(of.at) > forgotten {
			delete(w.pods, uid)
		}
	}
}

// late reports whether the cache does not show one of these pods as it was written long ago.
func (w *written) late(pods []*corev1.Pod, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range pods {
		if of, ok := w.pods[pod.UID]; ok && now.Sub(of.at) > believable {
			return true
		}
	}
	return false
}
