package rollout

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
)

// Fleet stores what is known about all pods that have the sidecars of one SidecarSet. It is not safe for concurrent use.
//
// The cost of Set and Delete does not depend on the number of pods. The cost of Select depends on the number of
// outdated pods.
type Fleet struct {
	pods map[types.NamespacedName]*Pod
	// outdated are candidates of an update or an eviction. unsettled are pods that are not ready or became ready recently.
	outdated, unsettled map[types.NamespacedName]*Pod
	uids                map[types.UID]types.NamespacedName
	workloads           map[string]int // number of pods by workload
	evicted             evictions
	holding             holding
	labels              map[string]map[string]int
	labelKeys           []string
	counts              Counts
}

// Counts holds numbers of pods.
type Counts struct {
	Matched, Updated, Ready, UpdatedReady int
	NotUpgradable, InFlight, Failed       int
	Aborted                               int
	// FailedUpdated is the number of failed pods that have been updated to the newest spec.
	FailedUpdated int
}

// NewFleet returns an empty Fleet. It counts the labels of the strategy's scatter terms.
func NewFleet(scatter []Term) *Fleet {
	f := &Fleet{
		pods: map[types.NamespacedName]*Pod{}, outdated: map[types.NamespacedName]*Pod{}, unsettled: map[types.NamespacedName]*Pod{},
		uids: map[types.UID]types.NamespacedName{}, workloads: map[string]int{}, evicted: evictions{}, labels: map[string]map[string]int{},
	}
	for _, term := range scatter {
		if f.labels[term.Key] == nil {
			f.labels[term.Key] = map[string]int{}
			f.labelKeys = append(f.labelKeys, term.Key)
		}
	}
	return f
}

// Counts returns the numbers of all pods.
func (f *Fleet) Counts() Counts { return f.counts }

// Outdated returns the pods that need an update, in no order.
func (f *Fleet) Outdated() []types.NamespacedName { return slices.Collect(maps.Keys(f.outdated)) }

// Workload returns the number of pods of a workload, of those that are not ready or have an operation in progress, and
// of those with an operation in progress. Evicted pods count as having an operation in progress until they are
// replaced, and their replacements until they are ready.
func (f *Fleet) Workload(workload string, now time.Time) (pods, unavailable, underWay int) {
	for _, pod := range f.unsettled {
		if pod.Workload != workload {
			continue
		}
		if !pod.Ready || pod.busy() {
			unavailable++
		}
		if pod.busy() || f.starting(pod) {
			underWay++
		}
	}
	_, missing, _ := f.missing(now)
	gone := missing[workload]
	return f.workloads[workload] + gone, unavailable + gone, underWay + gone
}

// Evictions returns the number of evicted pods whose replacements do not exist yet.
func (f *Fleet) Evictions(now time.Time) int {
	missing, _, _ := f.missing(now)
	return missing + f.evictedThere()
}

// evictedThere returns the number of evicted pods that are still in the fleet.
func (f *Fleet) evictedThere() (n int) {
	for key := range f.evicted {
		if pod, ok := f.pods[key]; ok && f.evicted.has(pod) {
			n++
		}
	}
	return n
}

// Get returns what is known about a pod.
func (f *Fleet) Get(key types.NamespacedName) (Pod, bool) {
	pod, ok := f.pods[key]
	if !ok {
		return Pod{}, false
	}
	return *pod, true
}

// Find returns what is known about the pod with this UID.
func (f *Fleet) Find(uid types.UID) (Pod, bool) { return f.Get(f.uids[uid]) }

// Set adds a pod, or replaces what is known about it.
func (f *Fleet) Set(pod Pod) {
	f.Delete(pod.Key)
	p := &pod
	if f.evicted.has(p) { // until it is gone
		p.Ready, p.ReadySince, p.InFlight, p.BrokenBefore = false, time.Time{}, true, false
	}
	f.pods[p.Key], f.uids[p.UID] = p, p.Key
	f.count(p, 1)
	if p.State == Outdated || p.State == NotUpgradable {
		f.outdated[p.Key] = p
	}
	f.unsettled[p.Key] = p // Select removes pods that have become available
}

// Delete removes a pod.
func (f *Fleet) Delete(key types.NamespacedName) {
	pod, ok := f.pods[key]
	if !ok {
		return
	}
	f.count(pod, -1)
	delete(f.pods, key)
	delete(f.uids, pod.UID)
	delete(f.outdated, key)
	delete(f.unsettled, key)
}

func (f *Fleet) count(pod *Pod, by int) {
	add := func(number *int, when bool) {
		if when {
			*number += by
		}
	}
	c := &f.counts
	settled := pod.Ready && !pod.InFlight
	add(&c.Matched, true)
	add(&c.Updated, pod.State == Updated)
	add(&c.Ready, settled)
	add(&c.UpdatedReady, settled && pod.State == Updated)
	add(&c.NotUpgradable, pod.State == NotUpgradable)
	add(&c.Aborted, pod.State == Aborted)
	add(&c.InFlight, pod.InFlight)
	add(&c.Failed, pod.Failed || pod.State == Aborted)
	add(&c.FailedUpdated, pod.Failed && pod.State == Updated || pod.State == Aborted)
	if pod.Workload != "" {
		f.workloads[pod.Workload] += by
		if f.workloads[pod.Workload] == 0 {
			delete(f.workloads, pod.Workload)
		}
	}
	for _, key := range f.labelKeys {
		if value, ok := pod.Labels[key]; ok {
			f.labels[key][value] += by
			if f.labels[key][value] == 0 {
				delete(f.labels[key], value)
			}
		}
	}
}

// unavailable returns the pods that are not available now, and when the first of them may become available without a change.
func (f *Fleet) unavailable(minReady time.Duration, now time.Time) (pods []*Pod, again recheck.At) {
	settled := 0
	for key, pod := range f.unsettled {
		at, ready := pod.availableAt(minReady)
		switch {
		case !ready:
		case !now.Before(at):
			delete(f.unsettled, key)
			delete(f.holding, pod.UID)
			settled++
			continue
		default:
			again = again.Or(at)
		}
		pods = append(pods, pod)
	}
	if settled > 64 && settled > len(f.unsettled) {
		f.unsettled = maps.Clone(f.unsettled) // the cost of iterating a map depends on the largest size it has had
	}
	return pods, again
}
