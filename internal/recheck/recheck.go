// Package recheck has the type for when a decision has to be made again although nothing has changed.
package recheck

import "time"

// At is when to decide again even without a change. The zero value means never.
type At struct{ time.Time }

// On returns an At for a time; a zero time means never.
func On(at time.Time) At { return At{at} }

// Or returns the earliest of a and some times, of which zero ones mean never.
func (a At) Or(times ...time.Time) At {
	for _, t := range times {
		if a.IsZero() || !t.IsZero() && t.Before(a.Time) {
			a = At{t}
		}
	}
	return a
}

// In returns how long to wait, at least the given time; 0 if a is never.
func (a At) In(now time.Time, least time.Duration) time.Duration {
	if a.IsZero() {
		return 0
	}
	return max(a.Sub(now), least)
}

// Passed reports whether it is time to decide again.
func (a At) Passed(now time.Time) bool { return !a.IsZero() && !now.Before(a.Time) }
