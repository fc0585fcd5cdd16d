package rollout

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/manager/cache"
)

// listEvery bounds how often the pods of a SidecarSet are read from the API server, for each pod: 10,000 pods are read
// once in 10 s, and what becomes available meanwhile is one batch.
const listEvery = time.Millisecond

// refresh shows the pods to the SidecarSet as the API server has them: after an outage, or when another replica has led, the
// cache may still show a pod ready that is not, and the next update would exceed maxUnavailable. It returns when that may
// be done; zero if it has been.
func (r *reconciler) refresh(ctx context.Context, s *set) (time.Time, error) {
	now := r.Clock()
	s.mu.Lock()
	due := s.listed.Add(time.Duration(s.fleet.Counts().Matched) * listEvery)
	s.gone = map[types.UID]bool{}
	s.mu.Unlock()
	defer s.forgetGone()
	if now.Before(due) {
		return due, nil
	}
	pods, err := cache.LivePods(ctx, r.Live, client.InNamespace(s.object.Spec.Namespace), client.MatchingLabelsSelector{Selector: s.selector.Labels()})
	if err != nil {
		return time.Time{}, err
	}
	s.listed = now
	for _, pod := range pods {
		if _, err := r.observe(ctx, s, pod); err != nil {
			return time.Time{}, err
		}
		s.seen(pod)
	}
	return time.Time{}, nil
}

func (s *set) forgetGone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = nil
}

// seen lets events from before be dropped.
func (s *set) seen(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[client.ObjectKeyFromObject(pod)]; k != nil && k.uid == pod.UID && !cache.Older(pod.ResourceVersion, k.version) {
		k.version = pod.ResourceVersion
	}
}
