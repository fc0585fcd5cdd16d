package history_test

import (
	"fmt"
	"testing"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// slow adds pods whose programs were that late with their first line.
func (s *fixture) slow(late float64) {
	for n := range 25 {
		uid := fmt.Sprintf("uid-slow-%d", n)
		s.pod(float64(n), uid, fmt.Sprintf("d%d", n), true)
		s.app(float64(n)+1+late, uid, entry.EventStart)
	}
}

// TestBoundsFollowHowLateProgramsAre: what is a fault on a machine that can carry the load is none on one that cannot, up to a bound.
func TestBoundsFollowHowLateProgramsAre(t *testing.T) {
	t.Parallel()
	follows := func(after float64) func(*fixture) {
		return func(s *fixture) {
			s.mark(20, "uid-1", "True")
			s.turn(30, "uid-1", "http", false)
			s.mark(30+after, "uid-1", "False")
			s.app(100, "uid-1", "SIGUSR1") // the run is not over before
		}
	}
	// The container is replaced at 41 s; when its program writes its first line is for the callers.
	replaced := func(s *fixture) {
		s.begin(40, 40.5, "r1", "uid-1", "c1")
		s.call(40.5, "StopContainer", "c1", "OK", 0.1)
		s.app(40.51, "uid-1", "SIGTERM")
		s.app(40.52, "uid-1", "exit signal")
		s.pod(41, "uid-1", "c2", true)
	}
	restarts := func(after float64) func(*fixture) {
		return func(s *fixture) {
			replaced(s)
			s.app(41+after, "uid-1", entry.EventStart)
			s.complete(41.5, "r1", "")
		}
	}
	// The replacement is stopped for another request before its program has written a line.
	again := func(after float64) func(*fixture) {
		return func(s *fixture) {
			replaced(s)
			s.complete(41.5, "r1", "")
			s.begin(41+after, 41.1+after, "r2", "uid-1", "c2")
			s.call(41.2+after, "StopContainer", "c2", "OK", 0.1)
			s.pod(42+after, "uid-1", "c3", true)
			s.app(42.1+after, "uid-1", entry.EventStart)
			s.complete(42.5+after, "r2", "")
		}
	}
	answers := func(after float64) func(*fixture) {
		return func(s *fixture) {
			s.update(1, "app", "file", "")
			s.update(1+after, "asker", "update", "v0-good")
			s.update(1.1+after, "asker", "updated", "v0-good 503")
		}
	}
	for name, test := range map[string]struct {
		plant func(*fixture)
		late  float64
		ok    bool
	}{
		"I8 in time":                   {follows(9), 0, true},
		"I8 late":                      {follows(21), 0, false},
		"I8 late on a slow machine":    {follows(21), 3, true},
		"I8 too late there":            {follows(23), 3, false},
		"I4 in time":                   {restarts(2), 0, true},
		"I4 late":                      {restarts(10), 0, false},
		"I4 late on a slow machine":    {restarts(10), 3, true},
		"I4 too late there":            {restarts(14), 3, false},
		"I4 stopped again":             {again(10), 0, false},
		"I4 stopped on a slow machine": {again(10), 3, true},
		"I4 stopped too late there":    {again(14), 3, false},
		"I10 begins":                   {answers(29), 0, true},
		"I10 begins late":              {answers(40), 0, false},
		"I10 late on a slow machine":   {answers(40), 3, true},
		"I10 begins too late there":    {answers(46), 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			s.slow(test.late)
			test.plant(s)
			if report := s.check(); report.OK() != test.ok {
				t.Errorf("late %s: violations %v, refused %v", report.Totals.Late, report.Violations, report.Refused)
			}
		})
	}
}
