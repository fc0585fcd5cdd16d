package downtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeWithoutAnAnswerIsAddedUpToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		down := func(from, to time.Duration) bool { return time.Since(began) >= from && time.Since(began) < to }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := Unanswered(ctx, time.Second, func(context.Context) bool {
			return !down(2*time.Second, 4*time.Second) && !down(9*time.Second, 12*time.Second)
		})
		// From the answer before the failures: 1 s to 4 s, and 8 s to 12 s, although the context ends at 10 s.
		if got != 7*time.Second {
			t.Errorf("got %s, want 7s", got)
		}
	})
}
