package history_test

import (
	"testing"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// process is one that is sampled for five minutes; used says what it uses at which second.
func (s *fixture) process(used func(second int) entry.Sample) {
	s.t.Helper()
	for second := 0; second < 300; second += 5 {
		sample := used(second)
		sample.At, sample.Program, sample.PID = at(float64(second)), "refit-manager", 7
		s.line(&s.samples, sample)
	}
}

func TestPlantedLeaks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"memory": {want: "leak", proof: "bytes of memory", plant: func(s *fixture) {
			s.process(func(second int) entry.Sample { return entry.Sample{Anon: int64(second) << 17} })
		}},
		"memory of a leader": {want: "leak", proof: "bytes of memory", plant: func(s *fixture) {
			s.process(func(second int) entry.Sample { return entry.Sample{Anon: int64(second) << 17, Leads: true} })
		}},
		"files": {want: "leak", proof: "files after a quarter", plant: func(s *fixture) {
			s.process(func(second int) entry.Sample { return entry.Sample{Files: 10 + second/4} })
		}},
		"threads": {want: "leak", proof: "threads after a quarter", plant: func(s *fixture) {
			s.process(func(second int) entry.Sample { return entry.Sample{Threads: 10 + second/10} })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

func TestMemoryThatComesAndGoesIsNoLeak(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.process(func(second int) entry.Sample {
		return entry.Sample{Anon: int64(20+second%60) << 20, Files: 10 + second%20, Threads: 10}
	})
	if report := s.check(); !report.OK() || report.Totals.Sampled != 1 {
		t.Errorf("violations %v, %+v", report.Violations, report.Totals)
	}
}

// The API server keeps the connections of a burst of reviews for 90 s, and then closes them.
func TestConnectionsOfABurstAreNoLeak(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.process(func(second int) entry.Sample {
		files := 14
		if second >= 190 && second < 280 {
			files = 44
		}
		return entry.Sample{Files: files}
	})
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v", report.Violations)
	}
}

func TestMemoryOfAManagerThatComesToLeadIsNoLeak(t *testing.T) {
	t.Parallel()
	s := opening(t)
	for second := 0; second < 600; second += 5 {
		sample := entry.Sample{At: at(float64(second)), Program: "refit-manager", PID: 7, Anon: 13 << 20}
		if second >= 300 {
			sample.Leads, sample.Anon = true, 32<<20
		}
		s.line(&s.samples, sample)
	}
	if report := s.check(); !report.OK() || report.Totals.Sampled != 2 {
		t.Errorf("violations %v, %+v", report.Violations, report.Totals)
	}
}

// A replica may be the leader by its Lease while it waits for the API server after a restart, and lead only later.
func TestMemoryOfAManagerThatLeadsAgainIsNoLeak(t *testing.T) {
	t.Parallel()
	s := opening(t)
	for second := 0; second < 300; second += 5 {
		sample := entry.Sample{At: at(float64(second)), Program: "refit-manager", PID: 7, Anon: 8 << 20, Leads: second < 130 || second >= 190}
		if second >= 190 {
			sample.Anon = 25 << 20
		}
		s.line(&s.samples, sample)
	}
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v", report.Violations)
	}
}
