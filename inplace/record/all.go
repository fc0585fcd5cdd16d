package record

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// All returns the records of the pod's own update and of its SidecarSets, including completed updates. It leaves out
// unreadable records.
func All(pod *corev1.Pod) []*Record {
	var all []*Record
	if own, err := Read(pod); err == nil && own != nil {
		all = append(all, own)
	}
	entries, err := sidecarRecords(pod)
	if err != nil {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if of, err := readEntry(pod, name, entries[name]); err == nil && of != nil {
			all = append(all, of)
		}
	}
	return all
}

// Changed returns when the update was begun or last continued, or zero if that is not recorded.
func (r *Record) Changed() time.Time {
	last := r.State.UpdateTimestamp.Time
	for _, batch := range r.State.ContainerBatchesRecord {
		if batch.Timestamp.After(last) {
			last = batch.Timestamp.Time
		}
	}
	return last
}
