package turns

import (
	"math"
	"time"
)

const (
	// delayWindow is what the delay is measured over.
	delayWindow = 10 * time.Second
	// A delay is reported from delayed on, until it is below onTime again: factors of the period.
	delayed = 1.5
	onTime  = 1.2
)

// Delay measures by how much longer than their periods the probes of a node take from one run to the next, as they wait
// for their turns. A wait that is shorter than the period delays a probe, but not the next one.
type Delay struct {
	begin            time.Time
	actual, expected time.Duration
	factor           float64
	known            bool
}

// Observe takes how long a probe has waited for its turn, and its period. It reports whether Factor has changed, or is
// known for the first time.
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

// set keeps the factor that is reported as long as the measured one is near it.
func (d *Delay) set(measured float64) {
	switch {
	case measured < onTime, d.factor == 0 && measured < delayed:
		d.factor = 0
	case d.factor == 0 || measured > d.factor*delayed || measured < d.factor/delayed:
		d.factor = max(math.Round(2*measured)/2, delayed)
	}
}

// Reset forgets everything, as there are no probes any more. It reports the same as Observe.
func (d *Delay) Reset() bool {
	before := *d
	*d = Delay{known: true}
	return before.factor != 0 || !before.known
}

// Factor is how many times longer than their periods the probes take, in steps of a half; 0 if they are on time. It is
// not known before the first window is over.
func (d *Delay) Factor() (factor float64, known bool) { return d.factor, d.known }
