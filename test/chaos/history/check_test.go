package history_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// restart is a request carried out without fault: old is stopped at second+1 and next runs from second+2 on.
func restart(s *fixture, second float64, name, old, next string, change ...func(*v1beta1.ContainerRecreateRequest)) {
	s.create(second, name, "uid-1", old, change...)
	s.status(second+0.9, name, recreating(old))
	s.stop(second+1, "uid-1", old)
	s.app(second+1.02, "uid-1", "exit signal")
	s.succeed(second+2, "uid-1", next, name)
}

// clean plays a history in which nothing is a violation.
func clean(t *testing.T, play func(*fixture)) {
	t.Helper()
	t.Parallel()
	s := opening(t)
	play(s)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v; want neither", report.Violations, report.Refused)
	}
}

// opening is a pod with its first container.
func opening(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t)
	s.start(0.9, "uid-1", "c1")
	return s
}

func forced(r *v1beta1.ContainerRecreateRequest) {
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true}
}

func deadline(seconds int64) func(*v1beta1.ContainerRecreateRequest) {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = &seconds }
}

func upFor(seconds int32) func(*v1beta1.ContainerRecreateRequest) {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{MinStartedSeconds: seconds}
	}
}

// Every planted bug must be found, under the name of the promise it breaks.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	tests := map[string]planted{
		"I1 the replacement is stopped as well": {want: "I1", proof: "2 different containers", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2", forced)
			s.requests["r1"].Status = v1beta1.ContainerRecreateRequestStatus{}
			s.store("r1", recreating("c2"))
			s.write(3.5, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 200, s.requests["r1"])
			s.call(3.6, "StopContainer", "c2", "OK", 0.1)
		}},
		"I1 stopped before its ID was stored": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.stop(2.5, "uid-1", "c1")
			s.status(2.9, "r1", recreating("c1"))
			s.complete(5, "r1", "deadline")
		}},
		"I1 stopped after the request had ended": {want: "I1", proof: "after that request had ended", plant: func(s *fixture) {
			s.begin(2, 3, "r1", "uid-1", "c1")
			s.complete(4, "r1", "deadline")
			s.stop(9, "uid-1", "c1")
		}},
		"I1 another container than at admission": {want: "I1", proof: "at admission it was c1", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.create(6, "r2", "uid-1", "c1")
			s.status(6.1, "r2", recreating("c2"))
			s.stop(6.2, "uid-1", "c2")
			s.app(6.22, "uid-1", "exit signal")
			s.succeed(7, "uid-1", "c3", "r2")
		}},
		"I1 two TERMs in one life": {want: "I1", proof: "got TERM 2 times", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.call(3, "StopContainer", "c1", "Canceled", 0.3)
			s.app(3.01, "uid-1", "SIGTERM")
			s.call(5, "StopContainer", "c1", "OK", 0.3)
			s.app(5.01, "uid-1", "SIGTERM")
			s.app(5.02, "uid-1", "exit signal")
			s.succeed(6, "uid-1", "c2", "r1")
		}},
		"I1 a running container is removed": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.begin(6, 6.5, "r2", "uid-1", "c2")
			s.call(7, "RemoveContainer", "c2", "OK", 0.1)
			s.succeed(8, "uid-1", "c3", "r2")
		}},
		"I1 another start was cancelled": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.stop(3, "uid-1", "c1")
			s.app(3.02, "uid-1", "exit signal")
			s.app(5, "uid-1", "start")
			s.startError(6, "uid-1", "c2", 2.5)
			s.succeed(8, "uid-1", "c3", "r1")
		}},
		"I2 a container of another pod": {want: "I2", proof: "which is app of pod uid-2", plant: func(s *fixture) {
			s.pod(1.5, "uid-2", "d1", true)
			s.begin(2, 2.5, "r1", "uid-1", "d1")
			s.call(3, "StopContainer", "d1", "OK", 0.1)
			s.complete(5, "r1", "deadline")
		}},
		"I2 nobody asked": {want: "I2", proof: "without any request", plant: func(s *fixture) {
			s.pod(1.5, "uid-2", "d1", true)
			s.call(3, "RemoveContainer", "d1", "OK", 0.1)
		}},
		"I2 a command where the probe asks otherwise": {want: "I2", proof: "ExecSync without any request", plant: func(s *fixture) {
			s.turn(10, "uid-1", "http", true)
			s.mark(11, "uid-1", "True")
			s.call(12, "ExecSync", "c1", "OK", 0.1)
		}},
		"I2 a pod is woken that has no request": {want: "I2", proof: "without a request for it", plant: func(s *fixture) {
			s.pod(1.5, "uid-2", "d1", true)
			s.write(3, ref{"patch", daemonUser, "pods", "status", "chaos", "pod-uid-2"}, 200, s.pods["uid-2"])
		}},
		"I3 an ended request is revived": {want: "I3", proof: "changed after it had ended", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.status(5, "r1", recreating("c1"))
		}},
		"I3 a failure becomes a success": {want: "I3", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.complete(3, "r1", "deadline")
			s.status(4, "r1", func(status *v1beta1.ContainerRecreateRequestStatus) { status.Message = "" })
		}},
		"I4 the old container still runs": {want: "I4", proof: "no other container", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.complete(3, "r1", "")
		}},
		"I4 the new container is not ready": {want: "I4", proof: "no other container", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.stop(3, "uid-1", "c1")
			s.app(3.02, "uid-1", "exit signal")
			s.app(4, "uid-1", "start")
			s.pod(4.1, "uid-1", "c2", false)
			s.complete(4.2, "r1", "")
		}},
		"I4 nothing runs": {want: "I4", proof: "was not running", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.stop(3, "uid-1", "c1")
			s.app(3.02, "uid-1", "exit signal")
			s.pod(4.1, "uid-1", "c2", true)
			s.complete(14.2, "r1", "")
		}},
		"I4 minStartedSeconds cut short": {want: "I4", proof: "want minStartedSeconds 5s", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2", upFor(5))
		}},
		"I4 one of two containers": {want: "I4", proof: "although container log did not", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2", func(r *v1beta1.ContainerRecreateRequest) {
				r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: "log"})
			})
		}},
		"I5 a deadline is passed over": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
			s.complete(12, "r1", "deadline")
		}},
		"I5 a deadline is passed over although a fault had ended": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.fault("daemon-kill", 4, 7, true)
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
			s.complete(13, "r1", "deadline")
		}},
		"I5 the second request on a pod starves": {want: "I5", proof: "chaos/r2", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.create(5, "r2", "uid-1", "c2")
			s.status(5.5, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.Phase = v1beta1.ContainerRecreateRequestPending
			})
		}},
		"I6 the younger request first": {want: "I6", proof: "before the older request chaos/r1", plant: youngerFirst},
		"I6 the younger request first, created after an interruption": {want: "I6", proof: "before the older request chaos/r1", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 1.5, 2.2, true)
			youngerFirst(s)
		}},
		"I8 a turn is not followed": {want: "I8", proof: "says True 10s after", plant: func(s *fixture) {
			s.mark(5, "uid-1", "True")
			s.turn(10, "uid-1", "http", false)
			s.mark(30, "uid-1", "False")
		}},
		"I8 a turn is not followed when the fault is over": {want: "I8", proof: "says nothing 10s after", plant: func(s *fixture) {
			s.fault("daemon-kill", 10, 20, true)
			s.turn(12, "uid-1", entry.AskedByExec, true)
			s.mark(35, "uid-1", "True")
		}},
		"I8 it turns back by itself": {want: "I8", proof: "says True 10s after", plant: func(s *fixture) {
			s.mark(5, "uid-1", "True")
			s.turn(10, "uid-1", "http", false)
			s.mark(11, "uid-1", "False")
			s.mark(15, "uid-1", "True")
		}},
		"I8 marks that nothing has provoked": {want: "I8", proof: "marked 4 times for 1 turns", plant: func(s *fixture) {
			s.mark(5, "uid-1", "True")
			s.mark(6, "uid-1", "False")
			s.mark(7, "uid-1", "True")
			s.turn(10, "uid-1", "http", false)
			s.mark(11, "uid-1", "False")
		}},
		"I8 a pod that nobody has marked": {want: "I8", proof: "nothing was ever written", plant: func(s *fixture) {
			s.turn(10, "uid-7", "http", false)
		}},
		"I11 a request of another node": {want: "I11", proof: `of node "node-2"`, plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2", func(r *v1beta1.ContainerRecreateRequest) { r.Labels[v1beta1.LabelNodeName] = "node-2" })
		}},
		"I11 a pod's spec": {want: "I11", plant: func(s *fixture) {
			s.write(3, ref{"patch", daemonUser, "pods", "", "chaos", "pod-uid-1"}, 200, s.pods["uid-1"])
		}},
		"I12 crashed containers stay down without us": {want: "I12", proof: "restarted after a crash", plant: func(s *fixture) {
			s.fault(entry.KindAbsent, 10, 60, true)
			s.app(20, "uid-9", "start")
			s.pod(21, "uid-9", "e1", true)
			s.app(25, "uid-9", "exit crash")
			s.deletePod(40, "uid-9")
			s.write(42, ref{"delete", kubeletUser, "pods", "", "chaos", "pod-uid-9"}, 200, nil)
		}},
		"I12 pods do not go away without us": {want: "I12", proof: "deleted", plant: func(s *fixture) {
			s.fault(entry.KindAbsent, 10, 60, true)
			s.app(20, "uid-9", "start")
			s.pod(21, "uid-9", "e1", true)
			s.app(25, "uid-9", "exit crash")
			s.app(26, "uid-9", "start")
			s.deletePod(40, "uid-9")
		}},
		"I12 no pod starts without us": {want: "I12", proof: "none was started", plant: func(s *fixture) {
			s.fault(entry.KindAbsent, 10, 60, true)
		}},
		"crash of the daemon": {want: "crash", proof: "exit code 2", plant: func(s *fixture) {
			s.ended("refit-daemon-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 2})
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { t.Parallel(); found(t, tt) })
	}
}

// youngerFirst is a request that is created after another one of its pod, and is carried out before it.
func youngerFirst(s *fixture) {
	s.create(2, "r1", "uid-1", "c1")
	s.begin(2.5, 3, "r2", "uid-1", "c1")
	s.stop(3.5, "uid-1", "c1")
	s.app(3.52, "uid-1", "exit signal")
	s.succeed(4, "uid-1", "c2", "r2")
	s.status(5, "r1", recreating("c1"))
	s.complete(5.1, "r1", "")
}
