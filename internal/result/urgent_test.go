package result_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/internal/result"
)

func TestAnUrgentRequestIsNotHeldUpByALazyOne(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Settle: 100 * ms}}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.Request("a")
		time.Sleep(second) // written at 100 ms
		w.RequestAfter("a", 0, 10*second)
		w.RequestAfter("b", 5*second, 0)
		time.Sleep(second)
		want(t, s.at("a"), 100*ms)
		w.Request("a")
		w.Request("b")
		time.Sleep(20 * second)
		want(t, s.at("a"), 100*ms, 2100*ms) // the lazy request went with the urgent one
		want(t, s.at("b"), 2100*ms)
	})
}

func TestAnUrgentRequestDuringAWriteIsWrittenAtItsEnd(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Interval: 10 * second}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = 2 * second })
		w.Request("a")
		time.Sleep(second)
		w.RequestAfter("a", 0, 0)
		time.Sleep(20 * second)
		want(t, s.at("a"), 0, 2*second)
	})
}

// Another client that writes the same object, and has to begin again whenever the object changes, has time for it.
func TestSlowWritesLeaveTimeToOtherWriters(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Yield: true}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = 2 * second })
		w.Request("a")
		time.Sleep(second)
		w.Request("a")
		time.Sleep(4 * second)
		s.set(func(s *store) { s.takes = 8 * second })
		w.RequestAfter("a", 0, 0)
		time.Sleep(6 * second)
		w.Request("a")
		time.Sleep(20 * second)
		want(t, s.at("a"), 0, 4*second, 8*second, 18*second)
	})
}
