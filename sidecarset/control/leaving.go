package control

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// recordDeleted records a pod that is being deleted. It does not matter who has evicted it: a previous leader or an
// administrator may have done it. It is not known whether pods that are deleted for other reasons will be replaced;
// they count until they are gone. The caller holds the lock.
func (s *set) recordDeleted(key types.NamespacedName, pod *corev1.Pod, injected bool) {
	e, one := s.entry(key), rollout.LeavingOf(pod, injected)
	if one == nil {
		if ending := rollout.EndingOf(pod); injected && ending != nil {
			e.ending = ending
			s.put(key, e)
		}
		return
	}
	e.ending = nil
	if e.leaving == nil || e.leaving.UID != one.UID {
		e.leaving = one
	}
	s.put(key, e)
}

// recordEviction records a pod that this replica has evicted. The caller holds the lock.
func (s *set) recordEviction(key types.NamespacedName, uid types.UID) {
	e := s.entry(key)
	e.leaving = &rollout.Leaving{UID: uid, Counted: true}
	s.put(key, e)
}

// countEvictions counts evictions that are not counted yet, either of injected pods or of others. The caller holds the lock.
func (s *set) countEvictions(injected bool) {
	for key, e := range s.pending {
		pod := e.leaving
		switch {
		case pod == nil || pod.Counted || pod.Injected != injected:
		case injected:
			pod.Counted = true
			s.fleet.EvictedByOther(key, pod)
		default:
			pod.Counted = s.repair.Adopt(key, pod, s.notInjected(), s.fleet.Before(pod.Workload, pod.At))
		}
	}
}
