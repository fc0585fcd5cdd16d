package result_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/internal/result"
)

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// A key of a share with nothing else to write waits for one key of another share, for any number of earlier requests of that share
// and in addition to the one that is being written.
func TestSharesTakeTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		share func(string) string
		want  time.Duration
	}{
		"by namespace": {namespaceOf, 200 * ms},
		"one for all":  {nil, 5 * second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, result.Config[string]{Share: tc.share}, func(t *testing.T, w *result.Writer[string], s *store) {
				s.set(func(s *store) { s.takes = 100 * ms })
				for n := range 50 {
					w.Request(fmt.Sprintf("loud/%d", n))
				}
				time.Sleep(time.Nanosecond) // the order of what is due at the same time is open
				w.Request("quiet/0")
				time.Sleep(6 * second)
				want(t, s.at("quiet/0"), tc.want)
				for n := range 50 {
					if got := s.at(fmt.Sprintf("loud/%d", n)); len(got) != 1 {
						t.Errorf("loud/%d written at %v, want once", n, got)
					}
				}
			})
		})
	}
}

// A key that is requested again while it waits for its turn keeps its place and is written once; one that is forgotten is not
// written, unless it is requested again.
func TestKeysThatWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Share: namespaceOf}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = 100 * ms })
		for _, key := range []string{"a/0", "a/1", "a/forgotten", "a/anew", "a/4"} {
			w.Request(key)
			time.Sleep(time.Nanosecond)
		}
		time.Sleep(50 * ms)
		w.Request("a/1")
		w.Forget("a/forgotten")
		w.Forget("a/anew")
		w.Request("a/anew")
		time.Sleep(2 * second)
		want(t, s.at("a/1"), 100*ms)
		want(t, s.at("a/forgotten"))
		want(t, s.at("a/4"), 200*ms)
		want(t, s.at("a/anew"), 300*ms)
	})
}

func TestWhatWaitsForItsTurnIsWrittenInTheEnd(t *testing.T) {
	t.Parallel()
	run(t, result.Config[string]{Share: namespaceOf, Pace: result.Pace{Final: 10 * second}}, func(t *testing.T, w *result.Writer[string], s *store) {
		s.set(func(s *store) { s.takes = 100 * ms })
		for n := range 5 {
			w.Request(fmt.Sprintf("a/%d", n))
		}
		time.Sleep(50 * ms)
		t.Cleanup(func() {
			for n := range 5 {
				if len(s.at(fmt.Sprintf("a/%d", n))) == 0 {
					t.Errorf("a/%d was not written", n)
				}
			}
		})
	})
}
