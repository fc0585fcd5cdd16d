package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Probes start in common slots. At a hundred probes per second, each starting at a time of its own, half of their CPU
// time was spent on waking up. On the other hand, the fewer start together, the sooner the last of them starts.
const (
	// batch is the intended number of network probes that start together.
	batch = 50
	// execSlot is the length of the slots of exec probes. The runtime takes a hundred times as long for an exec probe
	// as a network probe takes, so if many of them started together, they would wait for each other.
	execSlot = 100 * time.Millisecond
)

// slots are the possible lengths of slots. They divide a second, because periods are whole seconds.
var slots = []time.Duration{
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// slotFor returns the shortest slot in which a batch is due at this rate, in probes per second.
func slotFor(rate float64) time.Duration {
	for _, slot := range slots {
		if rate*slot.Seconds() >= batch {
			return slot
		}
	}
	return slots[len(slots)-1]
}

// alignTo returns a function that delays a time to the start of the next slot. The phase of the slots is random for
// each daemon, so that the nodes of a cluster do not all probe, and write results, at the same moment.
func (m *Manager) alignTo(slot func() time.Duration) func(time.Time) time.Duration {
	return func(due time.Time) time.Duration {
		slot := slot()
		past := time.Duration(due.UnixNano()-int64(m.phase)) % slot
		return (slot - past) % slot
	}
}

// alignment returns the alignment for the Spec of a probe.
func (m *Manager) alignment(p corev1.Probe) func(time.Time) time.Duration {
	if p.Exec != nil {
		return m.alignTo(func() time.Duration { return execSlot })
	}
	return m.alignTo(func() time.Duration { return time.Duration(m.slot.Load()) })
}

// tune chooses the slot length by the number of running network probes.
func (m *Manager) tune() {
	rate, execs := 0.0, 0
	for _, p := range m.pods {
		for _, one := range p.workers {
			if isExec(one.wanted) {
				execs++
			} else {
				rate += 1 / float64(max(one.wanted.Probe.PeriodSeconds, 1))
			}
		}
	}
	m.slot.Store(int64(slotFor(rate)))
	if execs == 0 {
		m.resetDelay()
	}
}
