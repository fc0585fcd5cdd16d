package rollout

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mark writes the condition SidecarSetUpgradable to the pods for which it has changed.
func (r *reconciler) mark(ctx context.Context, s *set) {
	s.mu.Lock()
	conditions := maps.Clone(s.conditions)
	uids := map[types.NamespacedName]types.UID{}
	for key := range conditions {
		uids[key] = s.known[key].uid
	}
	s.mu.Unlock()
	for key, condition := range conditions {
		condition.LastTransitionTime = metav1.NewTime(r.Clock())
		err := r.live.Mark(ctx, key, uids[key], condition)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			r.failed(s, key, err)
			continue
		}
		s.mu.Lock()
		if s.conditions[key] == condition {
			delete(s.conditions, key)
		}
		s.mu.Unlock()
	}
}
