package rollout

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/sidecarset/beside"
	"github.com/refit-project/refit/manager/sidecarset/podapi"
	"github.com/refit-project/refit/manager/sidecarset/report"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// missed is why a pod was not injected; nil if it was.
func (r *reconciler) missed(ctx context.Context, s *set, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest) (*missed.Pod, error) {
	if slices.Contains(annotation.Names(pod), s.object.Name) {
		return nil, nil
	}
	labels, err := beside.NamespaceLabels(ctx, r.client, pod.Namespace)
	if err != nil {
		return nil, err
	}
	disabled := pod.Namespace == metav1.NamespaceSystem || pod.Namespace == r.Namespace || labels[v1beta1.LabelSidecarInjection] == "disabled"
	seen, _ := budget.Observe(pod, requests, 0, r.Clock())
	why := missed.Judge(pod, s.object, &seen, disabled)
	return &why, nil
}

// repairs reports whether pods that were not injected are evicted.
func (s *set) repairs() bool {
	strategy := &s.object.Spec.InjectionStrategy
	return strategy.RepairPolicy == v1beta1.RepairEvict && choice.Active(s.object) && strategy.Engine != v1beta1.EnginePolicy
}

// evictions counts the pods that were evicted and are not replaced, those that are to be evicted, and those that others have evicted or
// deleted. The lock is held.
func (s *set) evictions(now time.Time) (evicted, left, leaving int) {
	evicted, leaving = s.fleet.Evictions(now), len(s.ending)
	if s.strategy.Recreate {
		left = s.fleet.Counts().NotUpgradable
	} else {
		evicted, leaving = 0, leaving+evicted
	}
	if s.repairs() {
		left += missed.Repairable(s.notInjected)
		if s.repair.UnderWay() != "" {
			evicted++
		}
	}
	return evicted, left, leaving
}

// repair evicts a pod that was not injected, if the SidecarSet asks for it and it is time. It returns when to look again.
func (r *reconciler) repair(ctx context.Context, s *set) (time.Time, error) {
	if !s.repairs() {
		return time.Time{}, nil
	}
	now := r.Clock()
	key, chosen, found, again := types.NamespacedName{}, missed.Pod{}, false, time.Time{}
	r.decide(s, func(others map[types.UID]time.Time) []types.UID {
		s.adopt(false)
		if key, found, again = s.repair.Next(s.notInjected, missed.Workloads(s.notInjected, s.fleet, others, now), now); found {
			chosen = s.notInjected[key]
			return []types.UID{chosen.UID}
		}
		for _, until := range others { // then it may be that one may be evicted
			again = rollout.Earliest(again, until)
		}
		return nil
	})
	if !found {
		return again, nil
	}
	pod, err := r.live.Pod(ctx, key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, client.IgnoreNotFound(err) // its watch event comes
	}
	requests, err := beside.Requests(ctx, r.client, pod)
	if err != nil {
		return time.Time{}, err
	}
	if why, err := r.missed(ctx, s, pod, requests); err != nil || why == nil || why.Reason != chosen.Reason || pod.DeletionTimestamp != nil {
		return now.Add(conflictDelay), err // another pod has come meanwhile
	}
	switch err := r.live.Evict(ctx, pod); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return now.Add(conflictDelay), nil
	case err != nil:
		r.Logger.Warn("pod without sidecars not evicted", "sidecarset", s.object.Name, "pod", key.String(), "err", err)
		r.Recorder.Eventf(report.Subject(key, pod.UID), s.object, corev1.EventTypeWarning, "RepairFailed", "Repair", "SidecarSet %s: %s", s.object.Name, report.Short(err))
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.repair.Refused(pod.UID, now), nil
	}
	r.Recorder.Eventf(report.Subject(key, pod.UID), s.object, corev1.EventTypeNormal, "EvictedForInjection", "Repair", "SidecarSet %s was not injected: %s", s.object.Name, chosen.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notInjected[key] = chosen
	s.repair.Evicted(key, pod.UID, s.notInjected, missed.Workloads(s.notInjected, s.fleet, nil, now)(chosen.Workload), now.Add(min(podapi.Grace(pod), rollout.LongestEnd)))
	s.evicted(key, pod.UID)
	delete(s.notInjected, key)
	return now.Add(gather), nil
}
