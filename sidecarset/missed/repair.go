package missed

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/sidecarset/rollout"
)

const (
	// replaceLimit is how long to wait for the replacement of an evicted pod. Its workload may have been scaled down.
	replaceLimit = 5 * time.Minute
	// afterRefusal is the pause after the eviction of a pod was refused, because the next one may be refused too.
	afterRefusal = time.Second
)

// backoff says for how long nothing is evicted after a replacement was not injected either, and when a refused eviction
// is tried again.
var backoff = wait.Backoff{First: time.Minute, Last: time.Hour}

// Repair is the state of the evictions for one SidecarSet. The zero value means that nothing has been evicted.
type Repair struct {
	// In progress: the pod that was evicted last, until its replacement is ready.
	uid      types.UID
	workload string
	pods     int                           // number of pods of its workload
	gone     time.Time                     // when it is killed at the latest
	known    map[types.NamespacedName]bool // pods that already were without sidecars
	// Number of consecutive failures, and until when nothing is evicted because of them.
	failures int
	until    time.Time
	// refused holds pods whose eviction was refused. They do not delay others.
	refused map[types.UID]refusal
}

// refusal is the number of consecutive refusals for a pod, and when its eviction may be tried again.
type refusal struct {
	failures int
	until    time.Time
}

// Workload is what is known about the pods of one workload, injected or not.
type Workload struct {
	// Pods is their number, Ready the number of ready ones without an operation in progress, and UnderWay the number of
	// those with one.
	Pods, Ready, UnderWay int
}

// Next returns the pod to evict now, if any, and when to call it again. Only
// one pod is evicted at a time: the next one follows when the workload has as many pods as before and all are ready. A
// pod is never evicted while another pod of its workload is not ready. Pods that are not ready come first, unless an
// operation is in progress on another pod of the workload. After the eviction the caller must call Evicted.
func (r *Repair) Next(pods Pods, workload func(string) Workload, now time.Time) (key types.NamespacedName, found bool, again recheck.At) {
	if r.uid != "" {
		if r.endRepair(pods, workload(r.workload), now); r.uid != "" {
			return key, false, recheck.On(r.gone.Add(replaceLimit))
		}
	}
	candidates, again := r.candidates(pods, workload, now)
	if len(candidates) == 0 {
		return key, false, again
	}
	if now.Before(r.until) {
		return key, false, recheck.On(r.until)
	}
	return slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(compare(a.Ready, b.Ready), a.Created.Compare(b.Created.Time), cmp.Compare(a.key.String(), b.key.String()))
	}).key, true, recheck.At{}
}

type candidate struct {
	key types.NamespacedName
	Pod
}

// candidates returns the pods that may be evicted. again is when a refused eviction may be tried again, or zero.
func (r *Repair) candidates(pods Pods, workload func(string) Workload, now time.Time) (found []candidate, again recheck.At) {
	left := map[types.UID]refusal{}
	for key, pod := range pods {
		refused, ok := r.refused[pod.UID]
		if ok {
			left[pod.UID] = refused
		}
		switch {
		case !pod.evictable(workload(pod.Workload)):
		case now.Before(refused.until):
			again = again.Or(refused.until)
		default:
			found = append(found, candidate{key, pod})
		}
	}
	r.refused = left
	return found, again
}

// compare orders false before true.
func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Evicted records that a pod of a workload has been evicted. pods are the pods from which Next has chosen it, and size
// is the number of all pods of the workload. gone is when it is killed at the latest.
func (r *Repair) Evicted(key types.NamespacedName, uid types.UID, workload string, pods Pods, size int, gone time.Time) {
	r.uid, r.workload, r.pods, r.gone, r.known = uid, workload, size, gone, map[types.NamespacedName]bool{}
	for other, pod := range pods {
		if other != key && pod.Workload == workload {
			r.known[other] = true
		}
	}
}

// UnderWay returns the workload whose pod has been evicted and not replaced yet, or "".
func (r *Repair) UnderWay() string {
	if r.uid == "" {
		return ""
	}
	return r.workload
}

// Adopt records an eviction by somebody else, for example the previous leader, unless a repair is in progress, and
// reports whether it did. The size of the workload is the number of pods that are older than the eviction: those in
// pods, and injected others.
func (r *Repair) Adopt(key types.NamespacedName, pod *rollout.Leaving, pods Pods, injected int) bool {
	if r.uid != "" {
		return false
	}
	before := map[types.NamespacedName]Pod{key: {Workload: pod.Workload}}
	for other, one := range pods {
		if one.Workload == pod.Workload && one.Created.Time.Before(pod.At) {
			before[other] = one
		}
	}
	r.Evicted(key, pod.UID, pod.Workload, maps.All(before), len(before)+injected, pod.Gone)
	return true
}

// Refused records that a pod could not be evicted, for example because of a PodDisruptionBudget, and returns when to
// continue with others. Its eviction is tried again after a pause that doubles each time.
func (r *Repair) Refused(uid types.UID, now time.Time) time.Time {
	if r.refused == nil {
		r.refused = map[types.UID]refusal{}
	}
	failures := r.refused[uid].failures + 1
	r.refused[uid] = refusal{failures: failures, until: now.Add(backoff.After(failures))}
	r.until = now.Add(afterRefusal)
	return r.until
}

func (r *Repair) pause(now time.Time) time.Time {
	r.failures++
	r.until = now.Add(backoff.After(r.failures))
	return r.until
}

// endRepair ends the repair in progress when its outcome is known.
func (r *Repair) endRepair(pods Pods, workload Workload, now time.Time) {
	for key, pod := range pods {
		if pod.Workload == r.workload && !r.known[key] && pod.Reason == NotReached {
			r.uid = ""
			r.pause(now) // further evictions would only create more such pods
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
