package rollout

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// leave notes a pod that is being deleted. If it was evicted, who has done so does not matter: a replica that led before may have, or an
// administrator. Of others it is not known whether they will be replaced. The lock is held.
func (s *set) leave(key types.NamespacedName, pod *corev1.Pod, injected bool) {
	one := rollout.LeavingOf(pod, injected)
	if one == nil {
		if injected && pod.DeletionTimestamp != nil && metav1.GetControllerOfNoCopy(pod) != nil {
			s.ending[key] = pod.UID
		}
		return
	}
	delete(s.ending, key)
	if s.leaving[key] == nil || s.leaving[key].UID != one.UID {
		s.leaving[key] = one
	}
}

// evicted notes a pod that this replica has evicted and counted. The lock is held.
func (s *set) evicted(key types.NamespacedName, uid types.UID) {
	s.leaving[key] = &rollout.Leaving{UID: uid, Counted: true}
}

// adopt counts the evictions that are not counted yet, of pods that were injected or of others. The lock is held.
func (s *set) adopt(injected bool) {
	for key, pod := range s.leaving {
		switch {
		case pod.Counted || pod.Injected != injected:
		case injected:
			pod.Counted = true
			s.fleet.Leave(key, pod)
		default:
			pod.Counted = s.repair.Adopt(key, pod, s.notInjected, s.fleet.Before(pod.Workload, pod.At))
		}
	}
}
