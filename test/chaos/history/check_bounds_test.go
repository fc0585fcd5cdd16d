package history_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// failedBy is a failure with a reason.
func failedBy(seconds float64, reason string) func(*v1beta1.ContainerRecreateRequestStatus) {
	return func(status *v1beta1.ContainerRecreateRequestStatus) {
		completed(seconds, "it took too long")(status)
		status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: reason}}
	}
}

func withLog(r *v1beta1.ContainerRecreateRequest) {
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{OrderedRecreate: true}
	r.Spec.Containers = append([]v1beta1.ContainerRecreateRequestContainer{{Name: "log"}}, r.Spec.Containers...)
}

// twoTerms is an application that gets TERM twice, beside what else is planted.
func twoTerms(s *fixture) {
	s.create(2, "r1", "uid-1", "c1")
	s.status(2.5, "r1", recreating("c1"))
	s.call(3, "StopContainer", "c1", "Unavailable", 1)
	s.app(3.01, "uid-1", "SIGTERM")
	s.call(5, "StopContainer", "c1", "OK", 0.1)
	s.app(5.01, "uid-1", "SIGTERM")
	s.app(6, "uid-1", "start")
	s.pod(6.1, "uid-1", "c2", true)
	s.status(6.2, "r1", completed(6.2, ""))
}

// startedTwice is a container whose start was broken off.
func startedTwice(s *fixture) {
	s.create(2, "r1", "uid-1", "c1")
	s.status(2.5, "r1", recreating("c1"))
	s.call(3, "StopContainer", "c1", "OK", 0.1)
	s.app(3.01, "uid-1", "SIGTERM")
	s.app(3.02, "uid-1", "exit signal")
	s.app(5, "uid-1", "start")
	s.startError(6, "uid-1", "c2", 5)
	s.app(8, "uid-1", "start")
	s.pod(8.1, "uid-1", "c3", true)
	s.status(8.2, "r1", completed(8.2, ""))
}

// Bugs that an excuse for faults, or a promise that was not judged, once hid.
func TestPlantedBugsBehindExcuses(t *testing.T) {
	t.Parallel()
	tests := map[string]planted{
		"killed without time to shut down": {want: "grace", proof: "given 0s to end, want 2s", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.status(2.5, "r1", recreating("c1"))
			s.callWithGrace(3, "StopContainer", "c1", "OK", 0.1, 0)
			s.app(4, "uid-1", "start")
			s.pod(4.1, "uid-1", "c2", true)
			s.status(4.2, "r1", completed(4.2, ""))
		}},
		"what was recreated is called failed": {want: "verdict", proof: "container app is called failed", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(60))
			s.status(2.5, "r1", recreating("c1"))
			s.call(3, "StopContainer", "c1", "OK", 0.1)
			s.app(3.01, "uid-1", "SIGTERM")
			s.app(4, "uid-1", "start")
			s.pod(4.1, "uid-1", "c2", true)
			s.status(62, "r1", failedBy(62, "DeadlineExceeded"))
		}},
		"failed by its deadline 290 s early": {want: "verdict", proof: "4m50s before it", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(300))
			s.status(12, "r1", failedBy(12, "DeadlineExceeded"))
		}},
		"failed by a deadline it does not have": {want: "verdict", proof: "has none", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.status(12, "r1", failedBy(12, "DeadlineExceeded"))
		}},
		"a deadline passed over while another node had a fault": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.faultOn("node-2", "daemon-kill", 4, 30)
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			s.status(2.5, "r1", recreating("c1"))
			s.status(20, "r1", completed(20, "deadline"))
		}},
		"recorded after the stop, and the API server was killed before": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 2.6, 4, true)
			s.create(2, "r1", "uid-1", "c1")
			s.call(5, "StopContainer", "c1", "OK", 0.1)
			s.app(5.01, "uid-1", "SIGTERM")
			s.status(5.5, "r1", recreating("c1"))
			s.app(6, "uid-1", "start")
			s.pod(6.1, "uid-1", "c2", true)
			s.status(6.2, "r1", completed(6.2, ""))
			s.audit.WriteString("{\"half\": \n")
		}},
		"stopped 500 times": {want: "volume", proof: "stopped 500 times", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.status(2.5, "r1", recreating("c1"))
			for n := range 500 {
				s.call(3+float64(n)/50, "StopContainer", "c1", "Unavailable", 0.01)
			}
			s.status(20, "r1", completed(20, "the runtime does not answer"))
		}},
		"written 1,000 times": {want: "volume", proof: "written 1002 times", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			for n := range 1000 {
				s.write(10+float64(n)/10, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 200, s.requests["r1"])
			}
		}},
		"the second container first, although they are ordered": {want: "I6", proof: "before log was recreated", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2", withLog)
		}},
		"crash of the manager with an API server": {want: "crash", proof: "exit code 2", plant: func(s *fixture) {
			s.ended("refit-manager-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 2, FinishedAt: metav1.NewTime(at(6))})
		}},
		"the daemon needs more memory than it may have": {want: "crash", proof: "OOMKilled", plant: func(s *fixture) {
			s.ended("refit-daemon-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 137, Reason: "OOMKilled"})
		}},
		"two TERMs, and containerd of another node has restarted": {want: "I1", proof: "got TERM 2 times", plant: func(s *fixture) {
			s.faultOn("node-2", entry.KindRuntimeRestart, 4, 4.5)
			twoTerms(s)
		}},
		"a start broken off without a fault of kubelet": {want: "I1", proof: "no stop of its own explains", plant: startedTwice},
		"a start broken off while kubelet of another node was killed": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-2", entry.KindKubeletRestart, 4.8, 7)
			startedTwice(s)
		}},
		"a start broken off by us while kubelet was killed": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindKubeletRestart, 4.8, 7)
			s.call(5.1, "RemoveContainer", "c2", "OK", 0.1)
			startedTwice(s)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { t.Parallel(); found(t, tt) })
	}
}

func TestExcusesOfTheSameNodeHold(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*fixture){
		"two TERMs": func(s *fixture) {
			s.faultOn("node-1", entry.KindRuntimeRestart, 4, 4.5)
			twoTerms(s)
		},
		"a start broken off": func(s *fixture) {
			s.faultOn("node-1", entry.KindKubeletRestart, 4.8, 7)
			startedTwice(s)
		},
		"a deadline": func(s *fixture) {
			s.faultOn("node-1", "daemon-kill", 4, 18)
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			s.status(19, "r1", failedBy(19, "DeadlineExceeded"))
		},
		"a stop whose record was stored although the daemon died, soon after another request": func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.create(4.3, "r2", "uid-1", "c2", forced)
			s.store("r2", recreating("c2"))
			s.write(4.4, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r2"}, 504, nil)
			s.call(5, "StopContainer", "c2", "OK", 0.1)
			s.app(5.01, "uid-1", "SIGTERM")
			s.fault(entry.KindAPIServerKill, 5.2, 7, true)
			s.status(7.5, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestPending
			})
			s.app(8, "uid-1", "start")
			s.pod(8.1, "uid-1", "c3", true)
			s.status(8.2, "r2", completed(8.2, ""))
		},
		"an end whose audit line is lost, shown by the next write": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(10))
			s.status(2.5, "r1", recreating("c1"))
			s.call(3, "StopContainer", "c1", "OK", 0.1)
			s.app(3.01, "uid-1", "SIGTERM")
			s.app(4, "uid-1", "start")
			s.pod(4.1, "uid-1", "c2", true)
			s.store("r1", completed(4.2, ""))
			s.fault(entry.KindAPIServerKill, 4.5, 6, true)
			s.write(60, ref{"patch", managerUser, "containerrecreaterequests", "", "chaos", "r1"}, 200, s.requests["r1"])
		},
		"a report of kubelet that is lost with the creation of the request": func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			s.app(6, "uid-1", "exit crash")
			s.app(7, "uid-1", "start")
			s.fault(entry.KindAPIServerKill, 7.5, 9, true) // with kubelet's report of c3, and with the creation
			s.create(10, "r2", "uid-1", "c2")
			s.status(10.5, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				recreating("c2")(status)
				completed(10.5, "")(status)
			})
		},
		"a manager that could not renew its lease": func(s *fixture) {
			s.fault("apiserver-pause", 4, 5.5, true)
			s.ended("refit-manager-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 1, FinishedAt: metav1.NewTime(at(6))})
		},
		"a hook took most of the grace period": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", func(r *v1beta1.ContainerRecreateRequest) {
				r.Spec.Containers[0].PreStop = &v1beta1.ProbeHandler{}
				r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(10))}
			})
			s.status(2.5, "r1", recreating("c1"))
			s.callWithGrace(9, "StopContainer", "c1", "OK", 0.1, 3)
			s.app(9.01, "uid-1", "SIGTERM")
			s.app(10, "uid-1", "start")
			s.pod(10.1, "uid-1", "c2", true)
			s.status(10.2, "r1", completed(10.2, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			play(s)
			if report := s.check(); !report.OK() {
				t.Errorf("violations %v, refused %v; want neither", report.Violations, report.Refused)
			}
		})
	}
}
