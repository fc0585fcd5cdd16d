package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

func TestGoodHistories(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		play func(*fixture)
		want verdict.Totals // without faults
	}{
		"five in a row": {want: verdict.Totals{Requests: 5, Succeeded: 5, Stops: 5, Ends: 5, Orders: 5}, play: func(s *fixture) {
			for n, name := range []string{"r1", "r2", "r3", "r4", "r5"} {
				restart(s, float64(2+3*n), name, "c"+name[1:], "c"+string(rune('2'+n)))
			}
		}},
		"killed between the stop and its answer, and again after it": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1, Repeated: 2},
			play: func(s *fixture) {
				s.begin(2, 2.5, "r1", "uid-1", "c1")
				s.call(3, "StopContainer", "c1", "Canceled", 0.3)
				s.app(3.01, "uid-1", "SIGTERM")
				s.call(5, "StopContainer", "c1", "Unavailable", 0)
				s.call(6, "StopContainer", "c1", "OK", 0.1)
				s.app(6.01, "uid-1", "start")
				s.pod(6.1, "uid-1", "c2", true)
				s.complete(6.2, "r1", "")
			}},
		"killed between the record of the stop and the call": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) { triedAgain(s, 3.2, 27) }},
		"told to end before it handled signals": {
			want: verdict.Totals{Requests: 3, Succeeded: 3, Stops: 3, Ends: 3, Orders: 3},
			play: func(s *fixture) {
				restart(s, 2, "r1", "c1", "c2") // c2 starts at 4
				s.app(6.12, "uid-1", "start")   // c3
				s.begin(5, 5.5, "r2", "uid-1", "c2")
				s.stop(5.6, "uid-1", "c2")
				s.pod(6.05, "uid-1", "c3", true)
				s.complete(6.06, "r2", "")
				s.begin(6.07, 6.08, "r3", "uid-1", "c3")
				s.call(6.1, "StopContainer", "c3", "OK", 0.1)
				s.succeed(8, "uid-1", "c4", "r3")
			}},
		"kubelet was killed while it had a container started": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) {
				s.fault(entry.KindKubeletRestart, 4.8, 7, true)
				startedTwice(s)
			}},
		"what is left of a start that was cancelled is removed later": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) {
				s.fault(entry.KindKubeletRestart, 4.8, 7, true)
				startedTwice(s)
				s.call(7.5, "RemoveContainer", "c2", "OK", 0.1)
			}},
		"containerd forgot the first TERM": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1, Repeated: 1},
			play: func(s *fixture) {
				s.fault(entry.KindRuntimeRestart, 4, 4.5, true)
				s.begin(2, 2.5, "r1", "uid-1", "c1")
				s.call(3, "StopContainer", "c1", "Unavailable", 1)
				s.app(3.01, "uid-1", "SIGTERM")
				s.stop(5, "uid-1", "c1")
				s.succeed(6, "uid-1", "c2", "r1")
			}},
		"a job deleted between two attempts": {want: verdict.Totals{Pulls: 3, Cancelled: 1}, play: func(s *fixture) {
			s.pullJob(2, "a")
			s.pull(3, "a", "NotFound")
			s.pull(4, "a", "NotFound")
			s.deletePullJob(5, "a")
			s.pull(6, "a", "NotFound") // the deletion was on its way
		}},
		"a deletion that an outage held up, and an image that another job wants": {want: verdict.Totals{Pulls: 2}, play: func(s *fixture) {
			s.pullJob(2, "a")
			s.deletePullJob(5, "a")
			s.fault("manager-kill", 6, 36, true)
			s.pull(38, "a", "NotFound")
			s.pullJob(60, "a")
			s.pull(61, "a", "OK")
		}},
		"two requests for one instance": {
			want: verdict.Totals{Requests: 2, Succeeded: 2, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) {
				s.create(1.5, "r1", "uid-1", "c1")
				s.create(1.6, "r2", "uid-1", "c1")
				s.status(2.5, "r1", recreating("c1"))
				s.stop(3, "uid-1", "c1")
				s.succeed(4, "uid-1", "c2", "r1")
				s.status(4.4, "r2", recreating("c1"))
				s.complete(4.5, "r2", "")
			}},
		"forced: the next instance": {want: verdict.Totals{Requests: 2, Succeeded: 2, Stops: 2, Ends: 2, Orders: 2}, play: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.create(6, "r2", "uid-1", "c1", forced)
			s.status(6.1, "r2", recreating("c2"))
			s.stop(6.2, "uid-1", "c2")
			s.succeed(7, "uid-1", "c3", "r2")
		}},
		"stopped and removed, with the instance before": {
			want: verdict.Totals{Requests: 2, Succeeded: 2, Stops: 2, Ends: 2, Orders: 2},
			play: func(s *fixture) {
				restart(s, 2, "r1", "c1", "c2")
				restart(s, 6, "r2", "c2", "c3")
				s.call(7.2, "RemoveContainer", "c1", "OK", 0.1)
				s.call(7.3, "RemoveContainer", "c2", "OK", 0.1)
				s.write(7.5, ref{"patch", daemonUser, "pods", "status", "chaos", "pod-uid-1"}, 200, s.pods["uid-1"])
			}},
		"pod deleted under way": {want: verdict.Totals{Requests: 1, Failed: 1, Stops: 1, Orders: 1}, play: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.deletePod(2.6, "uid-1")
			s.app(2.8, "uid-1", "SIGTERM")
			s.call(3, "StopContainer", "c1", "OK", 0.1)
			s.complete(3.1, "r1", "pod has gone")
		}},
		"deleted request": {want: verdict.Totals{Requests: 2, Deleted: 1, Failed: 1}, play: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.write(4, ref{"delete", user, "containerrecreaterequests", "", "chaos", "r1"}, 200, nil)
			s.begin(5, 5.5, "r2", "uid-1", "c1")
			s.complete(6, "r2", "deadline")
		}},
		"late by the length of a fault": {want: verdict.Totals{Requests: 1, Failed: 1}, play: func(s *fixture) {
			s.fault("apiserver-pause", 3, 20, true)
			s.fault("daemon-kill", 15, 30, true)
			s.fault("remark", 0, 1, false)
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			s.complete(34.9, "r1", "deadline")
		}},
		"the record of the ID is lost with the API server": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) {
				s.fault(entry.KindAPIServerKill, 2.6, 4, true)
				s.create(2, "r1", "uid-1", "c1")
				s.store("r1", recreating("c1"))
				s.stop(5, "uid-1", "c1")
				s.succeed(6, "uid-1", "c2", "r1")
				s.audit.WriteString("{\"half\": \n")
			}},
		"etcd did not answer in time, but stored": {
			want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1},
			play: func(s *fixture) {
				s.create(2, "r1", "uid-1", "c1")
				s.store("r1", recreating("c1"))
				s.write(2.5, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, nil)
				s.stop(5, "uid-1", "c1")
				s.succeed(6, "uid-1", "c2", "r1")
			}},
		"a crash of its own": {want: verdict.Totals{Requests: 1, Succeeded: 1}, play: func(s *fixture) {
			s.app(1.5, "uid-1", "exit crash")
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.succeed(3, "uid-1", "c2", "r1")
		}},
		"without manager and daemon": {want: verdict.Totals{Denied: 1}, play: func(s *fixture) {
			s.write(5, ref{"patch", daemonUser, "pods", "status", "chaos", "pod-on-node-2"}, 403, nil)
			s.fault(entry.KindAbsent, 10, 60, true)
			s.app(20, "uid-9", "start")
			s.pod(21, "uid-9", "e1", true)
			s.app(25, "uid-9", "exit crash")
			s.app(26, "uid-9", "start")
			s.deletePod(40, "uid-9")
			s.app(40.1, "uid-9", "SIGTERM")
			s.write(42, ref{"delete", kubeletUser, "pods", "", "chaos", "pod-uid-9"}, 200, nil)
		}},
		"the longest minStartedSeconds": {want: verdict.Totals{Requests: 1, Succeeded: 1, Stops: 1, Ends: 1, Orders: 1}, play: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1", upFor(10))
			s.stop(3, "uid-1", "c1")
			s.start(4, "uid-1", "c2")
			s.complete(14, "r1", "")
		}},
		"turns are followed, faults aside": {
			want: verdict.Totals{Turns: 3, Followed: 3, Due: 2, Slowest: 8 * time.Second},
			play: func(s *fixture) {
				s.mark(5, "uid-1", "True")
				s.turn(10, "uid-1", "http", false)
				s.mark(11, "uid-1", "False")
				s.fault("apiserver-pause", 40, 70, true)
				s.turn(35, "uid-1", "http", true)
				s.mark(73, "uid-1", "True")
				s.turn(100, "uid-1", "http", false)
				s.mark(102, "uid-1", "False")
			}},
		"turned back before anybody could see it": {want: verdict.Totals{Turns: 2, Followed: 1, Due: 1, Slowest: 500 * time.Millisecond}, play: func(s *fixture) {
			s.mark(5, "uid-1", "True")
			s.turn(10, "uid-1", "http", false)
			s.turn(10.5, "uid-1", "http", true)
			s.mark(11, "uid-1", "True")
		}},
		"the runtime did not answer for a while": {
			want: verdict.Totals{Turns: 1, Followed: 1, Due: 1, Slowest: time.Second},
			play: func(s *fixture) {
				s.mark(5, "uid-1", "True")
				s.fault("cri-call", 20, 30, false)
				s.mark(22, "uid-1", "False")
				s.mark(31, "uid-1", "True")
				s.turn(50, "uid-1", entry.AskedByExec, false)
				s.call(50.5, "ExecSync", "c1", "OK", 0.1)
				s.mark(51, "uid-1", "False")
			}},
		"failed by its deadline": {want: verdict.Totals{Requests: 1, Failed: 1}, play: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			s.status(2.5, "r1", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.Phase = v1beta1.ContainerRecreateRequestPending
			})
			s.complete(5.1, "r1", "deadline")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			tt.play(s)
			report := s.check()
			if !report.OK() {
				t.Errorf("violations %v, refused %v; want neither", report.Violations, report.Refused)
			}
			report.Totals.Faults, report.Totals.Lasted = nil, 0
			if diff := cmp.Diff(tt.want, report.Totals); diff != "" {
				t.Errorf("totals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbsenceMustBeReal(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.fault(entry.KindAbsent, 1.5, 60, true)
	restart(s, 2, "r1", "c1", "c2")
	if report := s.check(); len(report.Refused) == 0 || !strings.Contains(report.Refused[0], "I12 was not tried") {
		t.Errorf("refused %v, want a complaint that the daemon was at work", report.Refused)
	}
}
