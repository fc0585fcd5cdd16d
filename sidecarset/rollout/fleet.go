package rollout

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Fleet is what is known of all pods that have the sidecars of one SidecarSet. It is not safe for concurrent use.
//
// Set and Delete cost the same however many pods there are; Select costs as much as there are pods to be updated.
type Fleet struct {
	pods map[types.NamespacedName]*Pod
	// outdated are candidates of an update or an eviction, unsettled those that are not ready or became ready lately.
	outdated, unsettled map[types.NamespacedName]*Pod
	uids                map[types.UID]types.NamespacedName
	workloads           map[string]int // pods by workload
	evicted             evictions
	labels              map[string]map[string]int
	labelKeys           []string
	counts              Counts
}

// Counts are numbers of pods.
type Counts struct {
	Matched, Updated, Ready, UpdatedReady int
	NotUpgradable, InFlight, Failed       int
	Aborted                               int
	// FailedUpdated are those of the failed that have been updated to the newest spec.
	FailedUpdated int
}

// NewFleet makes an empty one. The labels of the strategy's scatter terms are counted.
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

// Counts of all pods.
func (f *Fleet) Counts() Counts { return f.counts }

// Outdated are the pods that are to be updated, in no order.
func (f *Fleet) Outdated() []types.NamespacedName { return slices.Collect(maps.Keys(f.outdated)) }

// Workload counts the pods of a workload, those of them that are not ready or on which something is under way, and the latter alone.
// Pods that were evicted and not replaced are under way, and those that replace them until they are ready.
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

// Evictions counts the pods that were evicted and whose replacements have not come.
func (f *Fleet) Evictions(now time.Time) int {
	missing, _, _ := f.missing(now)
	for key := range f.evicted {
		if pod, ok := f.pods[key]; ok && f.evicted.has(pod) {
			missing++
		}
	}
	return missing
}

// Get returns what is known of a pod.
func (f *Fleet) Get(key types.NamespacedName) (Pod, bool) {
	pod, ok := f.pods[key]
	if !ok {
		return Pod{}, false
	}
	return *pod, true
}

// Find returns what is known of the pod with that UID.
func (f *Fleet) Find(uid types.UID) (Pod, bool) { return f.Get(f.uids[uid]) }

// Set adds a pod or replaces what is known of it.
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
	f.unsettled[p.Key] = p // Select takes out those that have become available
}

// Delete takes a pod out.
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

// unavailable are the pods that are not available now, and when the first of them may be without another change.
func (f *Fleet) unavailable(minReady time.Duration, now time.Time) (pods []*Pod, again time.Time) {
	settled := 0
	for key, pod := range f.unsettled {
		at, ready := pod.availableAt(minReady)
		switch {
		case !ready:
		case !now.Before(at):
			delete(f.unsettled, key)
			settled++
			continue
		case again.IsZero() || at.Before(again):
			again = at
		}
		pods = append(pods, pod)
	}
	if settled > 64 && settled > len(f.unsettled) {
		f.unsettled = maps.Clone(f.unsettled) // iterating a map costs as much as it once had entries
	}
	return pods, again
}
