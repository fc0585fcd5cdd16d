package workload

import (
	"time"

	"github.com/refit-project/refit/internal/recheck"
)

const (
	// firstLook is the time without a write after which the pods of an update are read from the API server even without an event.
	// The time is doubled each time, up to lastLook.
	firstLook = 10 * time.Second
	lastLook  = 10 * time.Minute
)

// quiet decides when to read the pods of an update in which nothing is written. So a missed event, or a change that the cache does
// not show, only delays the update. The zero value is for a policy without an update.
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
