package rollout

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// replaceLimit is how long the replacement of an evicted pod is waited for, after its grace period: its workload may have been
// scaled down.
const replaceLimit = 5 * time.Minute

// LongestEnd is how long the end of an evicted pod is waited for at most, whatever its grace period is: the owner of one pod may
// have written a year, and others wait for their sidecars.
const LongestEnd = 10 * time.Minute

// evictions are pods that were evicted so that their workloads create others in their place.
type evictions map[types.NamespacedName]eviction

type eviction struct {
	uid      types.UID
	workload string
	pods     int                // that the workload had
	before   map[types.UID]bool // pods that are not replacements
	until    time.Time
}

func (e evictions) has(pod *Pod) bool {
	one, ok := e[pod.Key]
	return ok && one.uid == pod.UID
}

// Evicted notes that a pod has been evicted, which is killed at the time gone at the latest. It counts as unavailable until its
// workload has as many pods as before: a pod that is being deleted is none of the fleet any more, and that of a StatefulSet is
// created again only when it is gone. From then on the pod that replaces it counts as under way until it is ready.
func (f *Fleet) Evicted(key types.NamespacedName, gone time.Time) {
	pod, ok := f.pods[key]
	if !ok {
		return
	}
	f.evicted[key] = eviction{uid: pod.UID, workload: pod.Workload, pods: f.workloads[pod.Workload], before: f.before(pod.Workload, time.Time{}), until: gone.Add(replaceLimit)}
	f.Set(*pod)
}

// before are the pods of a workload, or those of them that were created before a time that is not zero.
func (f *Fleet) before(workload string, at time.Time) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, pod := range f.pods {
		if pod.Workload == workload && (at.IsZero() || pod.Created.Before(at)) {
			uids[pod.UID] = true
		}
	}
	return uids
}

// starting reports whether the pod replaces one that was evicted and is not ready yet.
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

// replaced reports whether the workload of an evicted pod has as many pods as before, and no new one that is not ready yet.
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

// Inherit takes over the evictions of the fleet of an earlier spec.
func (f *Fleet) Inherit(before *Fleet) { maps.Copy(f.evicted, before.evicted) }

// missing counts the pods that were evicted and are gone, and whose replacements have not come, by workload. Again is when the
// first of them is given up.
func (f *Fleet) missing(now time.Time) (total int, workloads map[string]int, again time.Time) {
	workloads = map[string]int{}
	for key, e := range f.evicted {
		pod, ok := f.pods[key]
		left := ok && f.evicted.has(pod) // and counts by itself
		if !now.Before(e.until) || !left && f.replaced(&e) {
			delete(f.evicted, key)
			continue
		}
		again = Earliest(again, e.until)
		if !left && f.workloads[e.workload] < e.pods {
			total++
			workloads[e.workload]++
		}
	}
	return total, workloads, again
}
