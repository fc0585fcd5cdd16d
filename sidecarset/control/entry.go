package control

import (
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// entry is what is known about the pod with a name, apart from what the fleet has, and about an earlier pod with this
// name that is being deleted.
type entry struct {
	// uid is empty unless the pod has the sidecars.
	uid types.UID
	// version is the resource version of our last write, or of the last read from the API server. Older events are ignored.
	version string
	// revision is the ControllerRevision named in the pod's annotations.
	revision string
	// obstacles has what prevents an update with these annotations; refused has the refusals of the last attempt.
	obstacles, refused []string
	judgedFor          string
	updated            bool // by this process; not every update is recorded in the pod
	failures           int
	retryAt            time.Time

	// missed says why a pod without the sidecars was not injected; nil for others.
	missed *missed.Pod
	// leaving is a pod that is being deleted because it was evicted, and ending a pod with a controller that is being
	// deleted for another reason.
	leaving *rollout.Leaving
	ending  *rollout.Ending

	problem    *string              // why the pod has failed or cannot be updated; nil if neither
	failed     bool                 // the problem is that it has failed
	due        recheck.At           // when to judge the pod again
	unfinished bool                 // its update continues without being selected
	condition  *corev1.PodCondition // to write, or nil
	// unreadable says which part of the pod cannot be read, until the Event about it has been sent; empty if there is nothing to send.
	// reported says that one was sent for this version of the SidecarSet: further changes of the pod cause no more.
	unreadable string
	reported   bool
}

// entry returns what is known about the pod with a name. The caller holds the lock, and calls put after a change.
func (s *set) entry(key types.NamespacedName) *entry {
	if e := s.pods[key]; e != nil {
		return e
	}
	return &entry{}
}

// put stores an entry. The caller holds the lock.
func (s *set) put(key types.NamespacedName, e *entry) {
	deleted := e.leaving != nil || e.ending != nil
	if !e.known() && !deleted {
		delete(s.pods, key)
		delete(s.pending, key)
		return
	}
	s.pods[key] = e
	if deleted || e.missed != nil || e.problem != nil || !e.due.IsZero() || e.unfinished || e.condition != nil || e.unreadable != "" {
		s.pending[key] = e
	} else {
		delete(s.pending, key)
	}
}

// forget removes a pod, but not whether one with this name is being deleted. The caller holds the lock.
func (s *set) forget(key types.NamespacedName) {
	s.fleet.Delete(key)
	e := s.entry(key)
	s.put(key, &entry{leaving: e.leaving, ending: e.ending})
}

// known reports whether the pod has the sidecars or should have them.
func (e *entry) known() bool { return e.uid != "" || e.missed != nil }

// of returns the entry if it is about the pod with this UID, or else a new one for it.
func (e *entry) of(uid types.UID) *entry {
	if e.uid == uid {
		return e
	}
	return &entry{uid: uid, leaving: e.leaving, ending: e.ending}
}

// notInjected returns the pods that were not injected. The caller holds the lock while it reads them.
func (s *set) notInjected() missed.Pods {
	return pending(s, func(e *entry) *missed.Pod { return e.missed })
}

// ending returns the pods that are being deleted for another reason than an eviction. The caller holds the lock while it
// reads them.
func (s *set) ending() iter.Seq2[types.NamespacedName, rollout.Ending] {
	return pending(s, func(e *entry) *rollout.Ending { return e.ending })
}

// problems returns why pods have failed, or why others cannot be updated. The caller holds the lock while it reads them.
func (s *set) problems(failed bool) iter.Seq2[types.NamespacedName, string] {
	return pending(s, func(e *entry) *string {
		if e.failed != failed {
			return nil
		}
		return e.problem
	})
}

// pending returns a part of the pending entries that have it.
func pending[V any](s *set, part func(*entry) *V) iter.Seq2[types.NamespacedName, V] {
	return func(yield func(types.NamespacedName, V) bool) {
		for key, e := range s.pending {
			if v := part(e); v != nil && !yield(key, *v) {
				return
			}
		}
	}
}

func count[V any](pods iter.Seq2[types.NamespacedName, V]) (n int) {
	for range pods {
		n++
	}
	return n
}
