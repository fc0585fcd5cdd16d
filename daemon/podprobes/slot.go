package podprobes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Probes start at common moments. At a hundred probes a second, each at a moment of its own, half of their CPU went into
// waking up; and the fewer start together, the sooner the last of them does.
const (
	// batch is how many network probes are to start together.
	batch = 50
	// execSlot is how far apart the moments are for exec probes: the runtime needs a hundred times as long for one of
	// those, so that many of them together would wait for each other.
	execSlot = 100 * time.Millisecond
)

// slots are how far apart the moments can be. They divide a second, as periods are whole seconds.
var slots = []time.Duration{
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// slotFor is the shortest slot in which a batch is due at so many probes a second.
func slotFor(rate float64) time.Duration {
	for _, slot := range slots {
		if rate*slot.Seconds() >= batch {
			return slot
		}
	}
	return slots[len(slots)-1]
}

// alignTo delays to the next of moments that are a slot apart. Their phase is this daemon's own: not all nodes of a
// cluster probe, and write results, at the same moment.
func (m *Manager) alignTo(slot func() time.Duration) func(time.Time) time.Duration {
	return func(due time.Time) time.Duration {
		slot := slot()
		past := time.Duration(due.UnixNano()-int64(m.phase)) % slot
		return (slot - past) % slot
	}
}

// alignment is for the Spec of a probe.
func (m *Manager) alignment(p corev1.Probe) func(time.Time) time.Duration {
	if p.Exec != nil {
		return m.alignTo(func() time.Duration { return execSlot })
	}
	return m.alignTo(func() time.Duration { return time.Duration(m.slot.Load()) })
}

// tune chooses the slot by the network probes at work.
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
