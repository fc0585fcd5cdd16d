package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/stale"
)

// believable is how long after an event of any pod the cache is considered up to date: the watch works.
const believable = 2 * time.Second

// refresh observes the pods as they are in the API server if no pod event has been received recently. After an outage,
// or after another replica was the leader, the cache may still show a pod as ready that is not, and the next update
// would exceed maxUnavailable. During a rollout there are events, so pods are not listed for each batch.
func (r *reconciler) refresh(ctx context.Context, s *set) error {
	if r.Clock().Sub(time.Unix(0, r.lastPodEvent.Load())) < believable {
		return nil
	}
	s.mu.Lock()
	s.gone = map[types.UID]bool{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gone = nil
	}()
	pods, _, err := cache.LivePods(ctx, r.Live, trimmer, client.InNamespace(s.object.Spec.Namespace), client.MatchingLabelsSelector{Selector: s.selector.Labels()})
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if _, err := r.observe(ctx, s, pod); err != nil {
			return err
		}
		s.seen(pod)
	}
	return nil
}

// seen makes older events of the pod be ignored.
func (s *set) seen(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(client.ObjectKeyFromObject(pod)); e.uid == pod.UID && !stale.Older(pod.ResourceVersion, e.version) {
		e.version = pod.ResourceVersion
	}
}
