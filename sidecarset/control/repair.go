package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// repairs reports whether pods that were not injected are evicted.
func (s *set) repairs() bool {
	strategy := &s.object.Spec.InjectionStrategy
	return strategy.RepairPolicy == v1beta1.RepairEvict && choice.Active(s.object) && strategy.Engine != v1beta1.EnginePolicy
}

// evictions counts the evicted pods that are not replaced yet, the pods that still have to be evicted, and the pods that others
// have evicted or deleted. It includes evictions whose watch event arrived before the response of the API server. The caller
// holds the lock.
func (s *set) evictions(now time.Time) (evicted, left, leaving int) {
	s.countEvictions(true)
	evicted, leaving = s.fleet.Evictions(now), count(s.ending())
	if s.strategy.Recreate {
		left = s.fleet.Counts().NotUpgradable
	} else {
		evicted, leaving = 0, leaving+evicted
	}
	if s.repairs() {
		left += missed.Repairable(s.notInjected())
		if s.repair.UnderWay() != "" {
			evicted++
		}
	}
	return evicted, left, leaving
}

// repair evicts a pod that was not injected, if the SidecarSet requests it and it is time. It returns when to run again.
func (r *reconciler) repair(ctx context.Context, s *set) (recheck.At, error) {
	if !s.repairs() {
		return recheck.At{}, nil
	}
	now := r.Clock()
	key, chosen, found, again := types.NamespacedName{}, missed.Pod{}, false, recheck.At{}
	r.decide(s, func(others map[types.UID]time.Time) []types.UID {
		s.countEvictions(false)
		if key, found, again = s.repair.Next(s.notInjected(), missed.Workloads(s.notInjected(), s.fleet, others, now), now); found {
			chosen = *s.entry(key).missed
			return []types.UID{chosen.UID}
		}
		for _, until := range others { // an eviction may be possible at that time
			again = again.Or(until)
		}
		return nil
	})
	if !found {
		return again, nil
	}
	pod, err := r.live.Pod(ctx, key.Namespace, key.Name)
	if err != nil {
		return recheck.At{}, client.IgnoreNotFound(err) // its watch event will follow
	}
	requests, err := beside.Requests(ctx, r.client, pod)
	if err != nil {
		return recheck.At{}, err
	}
	if why, err := beside.Missed(ctx, r.client, s.object, pod, requests, r.excluded(), now); err != nil || why == nil || why.Reason != chosen.Reason || pod.DeletionTimestamp != nil {
		return recheck.On(now.Add(conflict.First)), err // another pod has its name now
	}
	switch err := r.live.Evict(ctx, pod); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return recheck.On(now.Add(conflict.First)), nil
	case err != nil:
		r.Logger.Warn("pod without sidecars not evicted", "sidecarset", s.object.Name, "pod", key.String(), "err", err)
		r.Recorder.Eventf(report.Subject(key, pod.UID), s.object, corev1.EventTypeWarning, "RepairFailed", "Repair", "SidecarSet %s: %s", s.object.Name, report.Short(err))
		s.mu.Lock()
		defer s.mu.Unlock()
		return recheck.On(s.repair.Refused(pod.UID, now)), nil
	}
	r.Recorder.Eventf(report.Subject(key, pod.UID), s.object, corev1.EventTypeNormal, "EvictedForInjection", "Repair", "SidecarSet %s was not injected: %s", s.object.Name, chosen.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	e.missed = &chosen
	s.put(key, e)
	workload := missed.Workloads(s.notInjected(), s.fleet, nil, now)(chosen.Workload)
	s.repair.Evicted(key, pod.UID, chosen.Workload, s.notInjected(), workload.Pods, now.Add(min(kubelet.GracePeriod(pod.Spec.TerminationGracePeriodSeconds), rollout.LongestEnd)))
	e.missed = nil
	s.recordEviction(key, pod.UID)
	return recheck.On(now.Add(gather)), nil
}
