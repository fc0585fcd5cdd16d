package rollout

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/manager/cache"
)

// believable is how long after an event of any pod the cache is taken for what the API server has: the watch works.
const believable = 2 * time.Second

// refresh shows the pods to the SidecarSet as the API server has them, if no event of a pod has come lately: after an outage, or
// when another replica has led, the cache may still show a pod ready that is not, and the next update would exceed
// maxUnavailable. While a rollout goes on there are events, so that pods are not listed for each batch.
func (r *reconciler) refresh(ctx context.Context, s *set) error {
	if r.Clock().Sub(time.Unix(0, r.heard.Load())) < believable {
		return nil
	}
	s.mu.Lock()
	s.gone = map[types.UID]bool{}
	s.mu.Unlock()
	defer s.forgetGone()
	pods, err := cache.LivePods(ctx, r.Live, client.InNamespace(s.object.Spec.Namespace), client.MatchingLabelsSelector{Selector: s.selector.Labels()})
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
