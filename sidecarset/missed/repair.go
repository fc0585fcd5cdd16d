package missed

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

const (
	// replaceLimit is how long the replacement of an evicted pod is waited for: its workload may have been scaled down.
	replaceLimit = 5 * time.Minute
	// firstPause is how long nothing is evicted after a replacement has missed its injection too. It doubles each time.
	firstPause = time.Minute
	lastPause  = time.Hour
	// afterRefusal is how long nothing is evicted after the eviction of one pod was refused: the next one may be refused too.
	afterRefusal = time.Second
)

// Repair is the course of evictions for one SidecarSet. The zero value has evicted nothing.
type Repair struct {
	// under way: the pod that was evicted last, until its replacement is ready.
	uid      types.UID
	workload string
	pods     int                           // that the workload had
	gone     time.Time                     // when it is killed at the latest
	known    map[types.NamespacedName]bool // pods that were not injected before
	// failures in a row, and until when nothing is evicted for them.
	failures int
	until    time.Time
	// refused are pods whose eviction was refused. They hold up no others.
	refused map[types.UID]refusal
}

// refusal is how often the eviction of a pod was refused in a row, and until when it is not tried again.
type refusal struct {
	failures int
	until    time.Time
}

// Workload is what is known of the pods of one workload, injected or not.
type Workload struct {
	// Pods are all of them, Ready those that are ready and on which nothing is under way, UnderWay those on which something is.
	Pods, Ready, UnderWay int
}

// Next returns the pod to evict now, if any, and when to look again although nothing has changed; zero for never. One pod is
// evicted at a time: the next one when the workload has as many pods as before and all are ready, and never when another
// pod of its workload is not ready. A pod that is not ready comes first, unless something is under way on another one of its workload. After it has evicted the pod the caller calls Evicted.
func (r *Repair) Next(pods map[types.NamespacedName]Pod, workload func(string) Workload, now time.Time) (key types.NamespacedName, found bool, again time.Time) {
	if r.uid != "" {
		if r.settle(pods, workload(r.workload), now); r.uid != "" {
			return key, false, r.gone.Add(replaceLimit)
		}
	}
	candidates, again := r.candidates(pods, workload, now)
	if len(candidates) == 0 {
		return key, false, again
	}
	if now.Before(r.until) {
		return key, false, r.until
	}
	return slices.MinFunc(candidates, func(a, b types.NamespacedName) int {
		x, y := pods[a], pods[b]
		return cmp.Or(compare(x.Ready, y.Ready), x.Created.Compare(y.Created.Time), cmp.Compare(a.String(), b.String()))
	}), true, time.Time{}
}

// candidates are the pods that may be evicted; again is when one may be whose eviction was refused, zero if there is none.
func (r *Repair) candidates(pods map[types.NamespacedName]Pod, workload func(string) Workload, now time.Time) (keys []types.NamespacedName, again time.Time) {
	left := map[types.UID]refusal{}
	for key := range pods {
		pod := pods[key]
		refused, ok := r.refused[pod.UID]
		if ok {
			left[pod.UID] = refused
		}
		switch {
		case !pod.evictable(workload(pod.Workload)):
		case now.Before(refused.until):
			again = rollout.Earliest(again, refused.until)
		default:
			keys = append(keys, key)
		}
	}
	r.refused = left
	return keys, again
}

// compare puts false first.
func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Evicted notes that a pod has been evicted, one of the pods that Next has chosen from. It is killed at the time gone at the latest.
func (r *Repair) Evicted(key types.NamespacedName, uid types.UID, pods map[types.NamespacedName]Pod, of Workload, gone time.Time) {
	r.uid, r.workload, r.pods, r.gone, r.known = uid, pods[key].Workload, of.Pods, gone, map[types.NamespacedName]bool{}
	for other := range pods {
		if other != key && pods[other].Workload == r.workload {
			r.known[other] = true
		}
	}
}

// UnderWay is the workload whose pod has been evicted and is not replaced yet; empty if there is none.
func (r *Repair) UnderWay() string {
	if r.uid == "" {
		return ""
	}
	return r.workload
}

// Adopt notes an eviction that is not known, as of a replica that led before, unless a repair is under way; it reports whether it
// did. The workload had those of the pods, and as many that were injected, that are older than the eviction.
func (r *Repair) Adopt(key types.NamespacedName, pod *rollout.Leaving, pods map[types.NamespacedName]Pod, injected int) bool {
	if r.uid != "" {
		return false
	}
	before := map[types.NamespacedName]Pod{key: {Workload: pod.Workload}}
	for other := range pods {
		if pods[other].Workload == pod.Workload && pods[other].Created.Time.Before(pod.At) {
			before[other] = pods[other]
		}
	}
	r.Evicted(key, pod.UID, before, Workload{Pods: len(before) + injected}, pod.Gone)
	return true
}

// Refused notes that a pod could not be evicted, as by a PodDisruptionBudget, and returns when to go on with others. It is tried
// again after a pause that doubles each time.
func (r *Repair) Refused(uid types.UID, now time.Time) time.Time {
	if r.refused == nil {
		r.refused = map[types.UID]refusal{}
	}
	before := r.refused[uid].failures
	r.refused[uid] = refusal{failures: before + 1, until: now.Add(pauseAfter(before))}
	r.until = now.Add(afterRefusal)
	return r.until
}

// pauseAfter is how long to wait after so many failures and one more.
func pauseAfter(failures int) time.Duration { return min(firstPause<<min(failures, 10), lastPause) }

func (r *Repair) pause(now time.Time) time.Time {
	r.until = now.Add(pauseAfter(r.failures))
	r.failures++
	return r.until
}

// settle ends the repair that is under way when its outcome is known.
func (r *Repair) settle(pods map[types.NamespacedName]Pod, workload Workload, now time.Time) {
	for key, pod := range pods {
		if pod.Workload == r.workload && !r.known[key] && pod.Reason == NotReached {
			r.uid = ""
			r.pause(now) // evicting more would only create more such pods
			return
		}
	}
	switch {
	case workload.Pods >= r.pods && workload.Ready == workload.Pods:
		r.uid, r.failures, r.until = "", 0, time.Time{}
	case !now.Before(r.gone.Add(replaceLimit)):
		r.uid = ""
	}
}
