package history_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// The histories of this file are from a run of 38 minutes at a load of 40 to 55 on two cores. Beside each is the violation of the
// same kind that must still be found.

func TestWhatIsLateInAStorm(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*fixture){
		"an exited instance removed when the stop of the next returned, after the request had ended": func(s *fixture) {
			s.exitedBefore()
			s.stopBeyondItsDeadline(4.9)
			s.call(7.95, "RemoveContainer", "c0", "OK", 0.1)
			s.call(8, "RemoveContainer", "c1", "OK", 0.1)
		},
		"failed by its deadline before another container was ready, which a later write shows": func(s *fixture) {
			s.stoppedAtItsDeadline()
			lostEnd(s, 5.2)
			s.pod(6.1, "uid-1", "c2", true)
			s.store("r1", func(*v1beta1.ContainerRecreateRequestStatus) {})
			s.write(40, ref{"patch", managerUser, "containerrecreaterequests", "", "chaos", "r1"}, 200, s.requests["r1"])
		},
		"a turn that is followed when clients have listed again, as the API server was stopped": func(s *fixture) {
			s.mark(2, "uid-1", "True")
			s.fault(entry.KindAPIServerStop, 3, 83, true)
			s.turn(108, "uid-1", "http", false)
			s.mark(166, "uid-1", "False")
		},
		"ended with the first write that the API server took after its restart": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(6))
			s.fault(entry.KindAPIServerKill, 3, 10, true)
			s.status(57, "r1", failedBy(57, "DeadlineExceeded"))
		},
		"a program that writes the first line of its log 2 s after its start": func(s *fixture) {
			s.replaced(4)
			s.app(6, "uid-1", "start")
		},
		"a write of a sidecar that was killed before it had the answer": func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"patch", sidecarUser, "pods", "status", "chaos", "p1"}, 504, nil)
			s.faultOn("", entry.KindSidecarKill, 3, 9)
		},
		"an Event of a daemon that was killed before it had sent it": func(s *fixture) {
			s.disconnected(4)
			s.faultOn("node-1", entry.KindDaemonKill, 4.2, 9)
		},
		"a file that is back, seen by a follower that handled its signal 1.6 s late": func(s *fixture) {
			s.rolledBackUnseen("v0-good")
			s.update(38.048, "asker", "update", "v2-poison")
			s.update(38.053, "app", "file", "v0-good")
			s.update(38.32, "app", "file", "v2-poison")
			s.update(38.33, "app", "signal", "SIGHUP")
			s.update(38.35, "app", "note", "does not understand v2-poison")
			s.update(43.392, "app", "signal", "SIGHUP")
			s.update(43.406, "app", "loaded", "v0-good")
			s.update(43.408, "app", "file", "v0-good")
			s.update(43.418, "asker", "updated", "v2-poison 500")
			s.update(45, "asker", "update", "v3-short")
		},
	} {
		t.Run(name, func(t *testing.T) { clean(t, play) })
	}
}

func TestPlantedBugsInAStorm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"succeeded 6 s before the program of the next container began": {want: "I4", proof: "was the one to be replaced", plant: func(s *fixture) {
			s.replaced(4)
			s.app(10, "uid-1", "start")
		}},
		"a write of a sidecar that was killed later": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"patch", sidecarUser, "pods", "status", "chaos", "p1"}, 504, nil)
			s.faultOn("", entry.KindSidecarKill, 5, 9)
		}},
		"an exited instance removed after the request had ended, as a stop of another container returns": {want: "I1", proof: "RemoveContainer before its ID was stored", plant: func(s *fixture) {
			s.exitedBefore()
			s.stopBeyondItsDeadline(0.5)
			s.call(4.9, "StopContainer", "c7", "OK", 4)
			s.call(8.95, "RemoveContainer", "c0", "OK", 0.1)
		}},
		"an exited instance removed long after the stop of the next had returned": {want: "I1", proof: "RemoveContainer before its ID was stored", plant: func(s *fixture) {
			s.exitedBefore()
			s.stopBeyondItsDeadline(4)
			s.call(9.5, "RemoveContainer", "c0", "OK", 0.1)
		}},
		"called failed long after another container was ready, by the second write that was to end it": {want: "verdict", proof: "its replacement had been ready for", plant: func(s *fixture) {
			s.stoppedAtItsDeadline()
			end := map[string]any{"status": map[string]any{"completionTime": at(5.2)}}
			s.writePatch(5.2, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, end, nil)
			s.pod(6.1, "uid-1", "c2", true)
			s.status(40, "r1", failedBy(40, "DeadlineExceeded"))
		}},
		"a turn that is not followed long after the API server was stopped": {want: "I8", proof: "says True 10s after", plant: func(s *fixture) {
			s.mark(2, "uid-1", "True")
			s.fault(entry.KindAPIServerStop, 3, 10, true)
			s.turn(20, "uid-1", "http", false)
			s.mark(145, "uid-1", "False")
		}},
		"ended late after a restart of the API server, as no other request": {want: "I5", proof: "request chaos/r1: not ended 4", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(6))
			s.fault(entry.KindAPIServerKill, 3, 10, true)
			s.create(11, "r2", "uid-1", "c1", deadline(60))
			s.status(12, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.Phase = v1beta1.ContainerRecreateRequestPending
			})
			s.status(57, "r1", failedBy(57, "DeadlineExceeded"))
		}},
		"ended long after a restart of the API server": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(6))
			s.fault(entry.KindAPIServerKill, 3, 10, true)
			s.status(76, "r1", failedBy(76, "DeadlineExceeded"))
		}},
		"an Event refused although its daemon lives": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.disconnected(4)
			s.faultOn("node-1", entry.KindDaemonKill, 20, 24)
		}},
		"a file that is not back when the follower has handled its signal": {want: "I10", proof: `is "v1-poison", want "v0-good"`, plant: func(s *fixture) {
			s.rolledBackUnseen("v1-poison")
			s.update(45, "asker", "update", "v3-short")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

// exitedBefore is an instance that had exited before c1 was started.
func (s *fixture) exitedBefore() {
	s.t.Helper()
	s.pod(1.5, "uid-1", "c0", false)
	s.pod(1.6, "uid-1", "c1", true)
}

// stoppedAtItsDeadline is a request with a deadline in the 5th second whose container is started again after it.
func (s *fixture) stoppedAtItsDeadline() {
	s.t.Helper()
	s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
	s.stop(3, "uid-1", "c1")
	s.app(6, "uid-1", "start")
}

// disconnected is an Event of the daemon that it did not send to the end, while the webhooks get another certificate.
func (s *fixture) disconnected(seconds float64) {
	s.t.Helper()
	s.fault(entry.KindCertificates, seconds-2, seconds+2, false)
	s.line(&s.audit, map[string]any{
		"kind": "Event", "stage": "ResponseComplete", "verb": "create",
		"user":                     map[string]any{"username": daemonUser, "extra": map[string][]string{"authentication.kubernetes.io/node-name": {"node-1"}}},
		"objectRef":                map[string]string{"resource": "events", "namespace": "chaos"},
		"responseStatus":           map[string]any{"code": 500, "message": "client disconnected"},
		"requestReceivedTimestamp": at(seconds), "stageTimestamp": at(seconds + 0.1),
	})
}

// rolledBackUnseen is a refused update whose follower gets the signal of the rollback at once and handles it 1.6 s later.
func (s *fixture) rolledBackUnseen(back string) {
	s.t.Helper()
	s.updated(22, "v0-good")
	s.update(30.74, "asker", "update", "v1-poison")
	s.update(30.75, "app", "signal", "SIGHUP")
	s.update(30.77, "app", "file", "v1-poison")
	s.update(30.8, "app", "note", "does not understand v1-poison")
	s.update(36.483, "asker", "updated", "v1-poison 500")
	s.update(36.494, "app", "signal", "SIGHUP")
	s.update(38.0485, "app", "loaded", back)
}

const sidecarUser = "system:serviceaccount:chaos:refit-sidecar"

// replaced is a request that succeeds as kubelet reports the next container, before its program has written to its log.
func (s *fixture) replaced(seconds float64) {
	s.begin(2, 2.5, "r1", "uid-1", "c1")
	s.stop(3, "uid-1", "c1")
	s.pod(seconds, "uid-1", "c2", true)
	s.complete(seconds+0.1, "r1", "")
}
