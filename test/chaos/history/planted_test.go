package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// planted is a history with a bug in it.
type planted struct {
	plant func(*fixture)
	want  string // the invariant
	proof string // a part of what is reported
}

func found(t *testing.T, tt planted) {
	t.Helper()
	s := opening(t)
	tt.plant(s)
	report := s.check()
	i := slices.IndexFunc(report.Violations, func(v verdict.Violation) bool {
		return v.Invariant == tt.want && strings.Contains(v.String(), tt.proof)
	})
	if i < 0 {
		t.Fatalf("violations %v, want one of %s with %q", report.Violations, tt.want, tt.proof)
	}
	if len(report.Violations[i].Proof) == 0 || report.OK() {
		t.Errorf("violation %v: want lines that prove it, and a report that is not OK", report.Violations[i])
	}
}

// TestPlantedPulls plants pulls that no job wants.
func TestPlantedPulls(t *testing.T) {
	t.Parallel()
	tests := map[string]planted{
		"an attempt long after the deletion of the job": {want: "I9", proof: "job chaos/a", plant: func(s *fixture) {
			s.pullJob(2, "a")
			s.pull(3, "a", "NotFound")
			s.deletePullJob(5, "a")
			s.pull(20, "a", "NotFound")
		}},
		"an outage that is over excuses nothing": {want: "I9", proof: "job chaos/a", plant: func(s *fixture) {
			s.pullJob(2, "a")
			s.deletePullJob(5, "a")
			s.fault(entry.KindAPIServerKill, 6, 16, true)
			s.pull(30, "a", "OK")
		}},
		"a node is called done before the image is there": {want: "I14", proof: "1 nodes are called done, and on 0", plant: func(s *fixture) {
			s.countedPullJob(2, "a", 1)
			s.deletePullJob(8, "a")
			s.pull(3, "a", "ResourceExhausted")
		}},
		"given up although the registry is back": {want: "I14", proof: "1 of 2 nodes have succeeded", plant: func(s *fixture) {
			s.countedPullJob(2, "a", 1)
			s.pull(3, "a", "OK")
		}},
		"an image that no job has ever wanted": {want: "I9", proof: "no job has ever wanted it", plant: func(s *fixture) {
			s.pullJob(2, "a")
			s.pull(200, "b", "OK")
		}},
		"the API server has not answered the creation, and nothing shows that it took place": {want: "I9", proof: "no job has ever wanted it", plant: func(s *fixture) {
			s.unansweredPullJob(60, "b")
			s.pull(200, "b", "OK")
		}},
		"long after the deletion of a job whose creation was not answered": {want: "I9", proof: "job chaos/a", plant: func(s *fixture) {
			s.unansweredPullJob(2, "a")
			s.shownPullJob(4, "a")
			s.deletePullJob(5, "a")
			s.pull(20, "a", "NotFound")
		}},
		"before there was a job": {want: "I9", proof: "a pull of a began", plant: func(s *fixture) {
			s.pull(2, "a", "OK")
			s.pullJob(3, "a")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

func TestAJobWhoseCreationWasNotAnsweredIsPulled(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.unansweredPullJob(62, "a")
	s.pull(63, "a", "NotFound")
	s.shownPullJob(64, "a")
	s.deletePullJob(65, "a")
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

func TestAJobWhoseLastWriteMayHaveBeenStoredIsNotCalledStuck(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.countedPullJob(2, "a", 1)
	s.pull(3, "a", "OK")
	s.write(8, ref{"update", managerUser, "imagepulljobs", "status", "chaos", "a"}, 504, nil)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

func TestLeastLoad(t *testing.T) {
	t.Parallel()
	s := opening(t)
	restart(s, 2, "r1", "c1", "c2")
	s.fault("daemon-kill", 2, 3, true)
	s.audit.WriteString("{\"half\": \n")
	s.options.Least = verdict.Least{Requests: 2, Succeeded: 1, Stops: 2, Denied: 1, Followed: 1, Cancelled: 1, RolledOut: 1, Updated: 1, Refused: 1, Faults: map[string]int{"daemon-kill": 2, "kubelet-restart": 1}}
	report := s.check()
	want := []string{
		"accepted updates: 0, want at least 1",
		"ended rollouts: 0, want at least 1",
		"faults daemon-kill: 1, want at least 2",
		"faults kubelet-restart: 0, want at least 1",
		"followed turns: 0, want at least 1",
		"jobs deleted after a failed pull: 0, want at least 1",
		"refused updates: 0, want at least 1",
		"refused writes to another node: 0, want at least 1",
		"requests: 1, want at least 2",
		"stopped containers: 1, want at least 2",
		"audit log: 1 broken lines, but the API server was killed 0 times",
	}
	if diff := cmp.Diff(want, report.Refused); diff != "" || report.OK() {
		t.Errorf("refused (-want +got), OK %v:\n%s", report.OK(), diff)
	}
}
