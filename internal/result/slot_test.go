package result_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/result"
)

// The worker that would have written it writes what comes next.
func TestAKeyThatIsForgottenBeforeItIsDueTakesNoWorker(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{Settle: second}}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.Request("a")
		time.Sleep(500 * ms)
		w.Forget("a")
		time.Sleep(2 * second)
		w.Request("b")
		time.Sleep(time.Minute)
		want(t, s.at("a"))
		want(t, s.at("b"), 3500*ms)
	})
}

func TestAnUrgentRequestOvertakesOtherKeys(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{}, func(t *testing.T, w *result.Writer[string], s *store) {
		w.RequestAfter("a", 5*second, 0)
		w.RequestAfter("b", 10*second, 0)
		synctest.Wait()
		w.RequestAfter("b", 0, 0)
		time.Sleep(time.Minute)
		want(t, s.at("a"), 5*second)
		want(t, s.at("b"), 0)
	})
}

// The Destination fails before it sends anything, or it is not known what was sent.
func TestAFailureThatSentNothingIsRetriedNoSooner(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Pace: result.Pace{FirstRetry: 10 * second}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err, s.sent = errDown, result.Requests{} })
		for range 9 {
			w.Request("a")
			time.Sleep(second)
		}
		want(t, s.at("a"), 0)
	})
}

// A write that goes on when the program ends is waited for, and is not made again if it succeeds.
func TestRunEndsAfterTheWritesUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.during = func(string) { time.Sleep(second) } // it does not heed its context
		w := result.NewWriter(result.Config[string]{Destination: s, Pace: result.Pace{Final: 10 * second}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		w.Request("a")
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(s.start); took != second {
			t.Errorf("Run ended after %s", took)
		}
		want(t, s.at("a"), 0)
	})
}
