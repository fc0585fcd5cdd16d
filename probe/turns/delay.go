package turns

import (
	"math"
	"time"
)

const (
	// delayWindow is the time over which the delay is measured.
	delayWindow = 10 * time.Second
	// A delay is reported when it reaches delayed, until it is below onTime again. Both are factors of the period.
	delayed = 1.5
	onTime  = 1.2
)

// Delay measures by how much longer than their periods the probes of a node take from one run to the next, because they
// wait for their turns. A wait that is shorter than the period delays a probe, but not the next one.
type Delay struct {
	begin            time.Time
	actual, expected time.Duration
	factor           float64
	known            bool
}

// Observe records how long a probe has waited for its turn, and its period. It reports whether Factor has changed, or
// is known for the first time.
func (d *Delay) Observe(wait, period time.Duration, now time.Time) bool {
	if d.begin.IsZero() {
		d.begin = now
	}
	d.actual += max(wait, period)
	d.expected += period
	if now.Sub(d.begin) < delayWindow || d.expected <= 0 {
		return false
	}
	before, known := d.factor, d.known
	d.known = true
	d.set(float64(d.actual) / float64(d.expected))
	d.begin, d.actual, d.expected = now, 0, 0
	return d.factor != before || !known
}

// set keeps the reported factor while the measured one is near it.
func (d *Delay) set(measured float64) {
	switch {
	case measured < onTime, d.factor == 0 && measured < delayed:
		d.factor = 0
	case d.factor == 0 || measured > d.factor*delayed || measured < d.factor/delayed:
		d.factor = max(math.Round(2*measured)/2, delayed)
	}
}

// Reset clears all measurements when there are no probes any more. It returns the same as Observe.
func (d *Delay) Reset() bool {
	before := *d
	*d = Delay{known: true}
	return before.factor != 0 || !before.known
}

// Factor returns by which factor the time between runs exceeds the periods, in steps of a half, or 0 if the probes are
// on time. It is not known before the end of the first window.
func (d *Delay) Factor() (factor float64, known bool) { return d.factor, d.known }
