package result_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/result"
)

// A panic of the Destination ended the program.
func TestAnObjectWhoseWritePanicsIsTriedAgainAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		broken := true
		s.during = func(key string) {
			if key == "bad" && broken {
				s.set(func(s *store) { s.active[key]-- })
				panic("planted")
			}
		}
		w := result.NewWriter(result.Config[string]{Destination: s, Pace: result.Pace{FirstRetry: time.Second}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		w.Request("bad")
		w.Request("good")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(s.at("good")) != 1 || len(s.at("bad")) < 2 {
			t.Errorf("calls: %v, %v", s.at("good"), s.at("bad"))
		}
		s.set(func(*store) { broken = false })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
