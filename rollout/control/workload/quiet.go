package workload

import (
	"time"

	"github.com/refit-project/refit/internal/recheck"
)

const (
	// firstLook is how long nothing has to be written in an update until its pods are read from the API server although no event
	// asks for it. The time is doubled each time, up to lastLook.
	firstLook = 10 * time.Second
	lastLook  = 10 * time.Minute
)

// quiet says when to look at an update in which nothing is written. An event that was missed, or a change that the cache does not
// show, delays the update and does not stop it. The zero value is for a policy without an update.
type quiet struct {
	next recheck.At
	wait time.Duration
}

// due reports whether it is time to look.
func (q *quiet) due(updating bool, now time.Time) bool {
	switch {
	case !updating:
		*q = quiet{}
	case q.next.IsZero():
		q.acted(now)
	case q.next.Passed(now):
		q.wait = min(2*q.wait, lastLook)
		q.next = recheck.On(now.Add(q.wait))
		return true
	}
	return false
}

// acted notes that something was written.
func (q *quiet) acted(now time.Time) {
	q.wait = firstLook
	q.next = recheck.On(now.Add(q.wait))
}
