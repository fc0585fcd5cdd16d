package result_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/result"
)

func TestFailuresAreRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	pace := result.Pace{FirstRetry: 500 * ms, LastRetry: 4 * second}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err = errDown })
		for range 300 { // what is requested meanwhile does not shorten the pauses
			w.Request("a")
			time.Sleep(100 * ms)
		}
		at := s.at("a")
		pauses := []time.Duration{500 * ms, second, 2 * second, 4 * second, 4 * second, 4 * second}
		if len(at) < len(pauses) {
			t.Fatalf("%d attempts", len(at))
		}
		for i, least := range pauses {
			if pause := at[i+1] - at[i]; pause < least || pause > least*5/4+ms {
				t.Errorf("pause %d is %s, want %s and up to a quarter", i+1, pause, least)
			}
		}
		s.set(func(s *store) { s.err = nil })
		time.Sleep(5 * second)
		n := len(s.at("a"))
		w.Request("a") // a success has ended the pauses
		synctest.Wait()
		if got := len(s.at("a")); got != n+1 {
			t.Errorf("%d attempts, want %d", got, n+1)
		}
		time.Sleep(time.Hour)
		if got := len(s.at("a")); got != n+1 {
			t.Errorf("%d attempts after a success", got-n-1)
		}
	})
}

func TestOneFailingKeyDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{0, 3} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			run(t, result.Config[string]{Workers: workers}, func(t *testing.T, w *result.Writer[string], s *store) {
				s.set(func(s *store) { s.err = errDown })
				w.Request("a")
				synctest.Wait()
				s.set(func(s *store) { s.err = nil })
				w.Request("b")
				synctest.Wait()
				want(t, s.at("b"), 0)
				time.Sleep(2 * second)
				if len(s.at("a")) != 2 {
					t.Errorf("a was written at %v", s.at("a"))
				}
			})
		})
	}
}

func TestAWriteIsEndedByItsTimeout(t *testing.T) {
	t.Parallel()
	pace := result.Pace{Timeout: 3 * second, FirstRetry: second}
	run(t, result.Config[string]{Pace: pace}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = time.Hour })
		w.Request("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Flush(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("Flush: %v after %s", err, time.Since(s.start))
		}
		time.Sleep(2 * second)
		if n := len(s.at("a")); n != 2 { // and it is retried
			t.Errorf("%d attempts", n)
		}
	})
}

func TestPaceByDefault(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = time.Hour })
		w.Request("a")
		time.Sleep(20 * time.Minute)
		at := s.at("a")
		for i, pause := range []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, time.Minute, time.Minute} {
			if next := at[i+1] - at[i] - 10*second; next < pause || next > pause*5/4+ms { // the call is ended after ten seconds
				t.Errorf("pause %d is %s, want %s and up to a quarter", i+1, next, pause)
			}
		}
	})
}

func TestEachFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var observed []string
	config := result.Config[string]{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observe: func(key string, sent result.Requests, err error) {
			observed = append(observed, fmt.Sprintln(key, sent.Writes, err))
		},
	}
	run(t, config, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.err = errDown })
		w.Request("a")
		time.Sleep(10 * second)
		s.set(func(s *store) { s.err = errors.New("another fault") })
		time.Sleep(10 * second)
		s.set(func(s *store) { s.err = fmt.Errorf("%w: conflict", result.ErrStale) })
		time.Sleep(time.Minute)
		s.set(func(s *store) { s.err = nil })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for fault, times := range map[string]int{"API server is down": 1, "another fault": 1, "conflict": 0} {
			if n := strings.Count(log.String(), fault); n != times {
				t.Errorf("%q is in the log %d times, want %d:\n%s", fault, n, times, &log)
			}
		}
		if len(observed) != len(s.at("a")) || observed[0] != "a 1 "+errDown.Error()+"\n" || observed[len(observed)-1] != "a 1 <nil>\n" {
			t.Errorf("observed %q of %d calls", observed, len(s.at("a")))
		}
	})
}
