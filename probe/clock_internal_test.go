package probe

import (
	"strings"
	"testing"
	"time"
)

// Waiting for a time without a monotonic clock reading would use the wall clock: an hour longer if it is set back by an
// hour.
func TestTimesOfProbesDoNotFollowTheWallClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	spec := Spec{
		Timing: Timing{StartDelay: 10 * time.Second, Period: time.Second}, Since: now.Round(0), // as from the API
		Align: func(time.Time) time.Duration { return 5 * time.Millisecond },
	}
	for what, at := range map[string]time.Time{
		"first": spec.first(now, now), "later": spec.aligned(now), "after a change": spec.again(now, now.Add(-time.Second), spec),
	} {
		if !strings.Contains(at.String(), " m=") {
			t.Errorf("%s: %s has no reading of the monotonic clock", what, at)
		}
	}
}
