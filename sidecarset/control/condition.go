package control

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/control/report"
)

// reportUnreadable sends an Event about each pod that is not updated because a part of it cannot be read, once for each version of the
// SidecarSet.
func (r *reconciler) reportUnreadable(s *set) {
	unreadable, uids := map[types.NamespacedName]string{}, map[types.NamespacedName]types.UID{}
	s.mu.Lock()
	for key, e := range s.pending {
		if e.unreadable != "" {
			unreadable[key], uids[key] = e.unreadable, e.uid
			e.unreadable, e.reported = "", true
			s.put(key, e)
		}
	}
	s.mu.Unlock()
	for key, why := range unreadable {
		r.Recorder.Eventf(report.Subject(key, uids[key]), s.object, corev1.EventTypeWarning, "PodNotReadable", "Judge", "SidecarSet %s does not update the pod: %s", s.object.Name, why)
	}
}

// mark writes the condition SidecarSetUpgradable to the pods for which it has changed. A write that was refused is
// repeated after a delay, and not at each event.
func (r *reconciler) mark(ctx context.Context, s *set) {
	now := r.Clock()
	s.mu.Lock()
	uids, conditions := map[types.NamespacedName]types.UID{}, map[types.NamespacedName]*corev1.PodCondition{}
	for key, e := range s.pending {
		if e.condition != nil && !now.Before(e.retryAt) {
			uids[key], conditions[key] = e.uid, e.condition
		}
	}
	s.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(parallel)
	for key, condition := range conditions {
		group.Go(func() error {
			condition.LastTransitionTime = metav1.NewTime(now)
			err := r.Guard.Do("sidecarset", s.subject(key), func() error { return r.live.SetCondition(ctx, key, uids[key], condition) })
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				r.failed(s, key, err)
				return nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if e := s.entry(key); e.condition == condition {
				e.condition = nil
				s.put(key, e)
			}
			return nil
		})
	}
	_ = group.Wait() // the goroutines return no errors
}
