package rollout

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
)

// replaceLimit is how long to wait for the replacement of an evicted pod, after its grace period. Its workload may have
// been scaled down.
const replaceLimit = 5 * time.Minute

// LongestEnd limits how long to wait for the end of an evicted pod, whatever its grace period: the owner of a pod may
// have set a year, while others wait for their sidecars.
const LongestEnd = 10 * time.Minute

// evictions holds pods that were evicted so that their workloads replace them.
type evictions map[types.NamespacedName]eviction

type eviction struct {
	uid      types.UID
	workload string
	pods     int                // number of pods of its workload before the eviction
	before   map[types.UID]bool // pods that are not replacements
	until    time.Time
}

func (e evictions) has(pod *Pod) bool {
	one, ok := e[pod.Key]
	return ok && one.uid == pod.UID
}

// Evicted records that a pod has been evicted. gone is when it is killed at the latest. The pod counts as unavailable
// until its workload has as many pods as before: a pod that is being deleted is no longer in the fleet, and a
// StatefulSet creates its replacement only when it is gone. From then on the replacement counts as having an operation
// in progress until it is ready.
func (f *Fleet) Evicted(key types.NamespacedName, gone time.Time) {
	pod, ok := f.pods[key]
	if !ok {
		return
	}
	f.evicted[key] = eviction{uid: pod.UID, workload: pod.Workload, pods: f.workloads[pod.Workload], before: f.before(pod.Workload, time.Time{}), until: gone.Add(replaceLimit)}
	f.Set(*pod)
}

// before returns the pods of a workload. If at is not zero, it only returns those created before at.
func (f *Fleet) before(workload string, at time.Time) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, pod := range f.pods {
		if pod.Workload == workload && (at.IsZero() || pod.Created.Before(at)) {
			uids[pod.UID] = true
		}
	}
	return uids
}

// starting reports whether the pod replaces an evicted one and is not ready yet.
func (f *Fleet) starting(pod *Pod) bool {
	if pod.Ready || pod.Stuck {
		return false
	}
	for _, e := range f.evicted {
		if e.workload == pod.Workload && !e.before[pod.UID] {
			return true
		}
	}
	return false
}

// replaced reports whether the workload of an evicted pod has as many pods as before, and all new ones are ready.
func (f *Fleet) replaced(e *eviction) bool {
	if f.workloads[e.workload] < e.pods {
		return false
	}
	for _, pod := range f.unsettled {
		if pod.Workload == e.workload && !e.before[pod.UID] && !pod.Ready && !pod.Stuck {
			return false
		}
	}
	return true
}

// Inherit copies the evictions from the fleet of an earlier spec.
func (f *Fleet) Inherit(before *Fleet) { maps.Copy(f.evicted, before.evicted) }

// missing returns the number of pods that were evicted and are gone, and whose replacements do not exist yet, in total
// and by workload. again is when the first of them stops counting.
func (f *Fleet) missing(now time.Time) (total int, workloads map[string]int, again recheck.At) {
	workloads = map[string]int{}
	for key, e := range f.evicted {
		pod, ok := f.pods[key]
		left := ok && f.evicted.has(pod) // it counts by itself
		if !now.Before(e.until) || !left && f.replaced(&e) {
			delete(f.evicted, key)
			continue
		}
		again = again.Or(e.until)
		if !left && f.workloads[e.workload] < e.pods {
			total++
			workloads[e.workload]++
		}
	}
	return total, workloads, again
}
