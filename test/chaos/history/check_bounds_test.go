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
	s.begin(2, 2.5, "r1", "uid-1", "c1")
	s.call(3, "StopContainer", "c1", "Unavailable", 1)
	s.app(3.01, "uid-1", "SIGTERM")
	s.stop(5, "uid-1", "c1")
	s.succeed(6, "uid-1", "c2", "r1")
}

// startedTwice is a container whose start was broken off.
func startedTwice(s *fixture) {
	s.begin(2, 2.5, "r1", "uid-1", "c1")
	s.stop(3, "uid-1", "c1")
	s.app(3.02, "uid-1", "exit signal")
	s.app(5, "uid-1", "start")
	s.startError(6, "uid-1", "c2", 5)
	s.succeed(8, "uid-1", "c3", "r1")
}

// unreported is a stop of an instance that ends before kubelet's next report.
func unreported(s *fixture) {
	s.app(2, "uid-1", "exit crash")
	s.app(2.5, "uid-1", "start") // c2, which is in no status
	s.create(2.8, "r1", "uid-1", "c1", forced)
	s.status(3, "r1", recreating("c2"))
	s.stop(3.1, "uid-1", "c2")
	s.app(3.12, "uid-1", "exit signal")
	s.succeed(4, "uid-1", "c3", "r1")
}

// sidecarEnded is kubelet's word on a sidecar that updates files.
func (s *fixture) sidecarEnded(how corev1.ContainerStateTerminated) {
	s.t.Helper()
	s.pod(5, "uid-3", "f1", false)
	status := &s.pods["uid-3"].Status.ContainerStatuses[0]
	status.Name, status.State.Terminated = "refit-sidecar", &how
	s.write(6, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-3"}, 200, s.pods["uid-3"])
}

// triedAgain is a stop with a grace period of 30 s that is recorded, and made that much later with what is left.
func triedAgain(s *fixture, later float64, grace int) {
	s.create(2, "r1", "uid-1", "c1", func(r *v1beta1.ContainerRecreateRequest) {
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(30))}
	})
	s.status(2.5, "r1", func(status *v1beta1.ContainerRecreateRequestStatus) {
		recreating("c1")(status)
		status.ContainerRecreateStates[0].StopBegan = new(metav1.NewMicroTime(at(2.5)))
	})
	s.callWithGrace(2.5+later, "StopContainer", "c1", "OK", 0.1, grace)
	s.app(2.51+later, "uid-1", "SIGTERM")
	s.succeed(4+later, "uid-1", "c2", "r1")
}

// Bugs that an excuse for faults, or a promise that was not judged, once hid.
func TestPlantedBugsBehindExcuses(t *testing.T) {
	t.Parallel()
	tests := map[string]planted{
		"killed without time to shut down": {want: "grace", proof: "given 0s to end, want 2s", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.callWithGrace(3, "StopContainer", "c1", "OK", 0.1, 0)
			s.succeed(4, "uid-1", "c2", "r1")
		}},
		"given less than what is left, by the daemon that tried the stop again": {want: "grace", proof: "given 1s to end, want 30s", plant: func(s *fixture) {
			triedAgain(s, 3, 1)
		}},
		"given less than its grace period, by the daemon that began the stop": {want: "grace", proof: "given 10s to end, want 30s", plant: func(s *fixture) {
			triedAgain(s, 0.3, 10)
		}},
		"what was recreated is called failed": {want: "verdict", proof: "container app is called failed", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(60))
			s.stop(3, "uid-1", "c1")
			s.start(4, "uid-1", "c2")
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
		"an end that the API server did not store, and that is not written again": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			lostEnd(s, 5.5)
			s.create(30, "r2", "uid-1", "c1")
			s.status(30.5, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.Phase = v1beta1.ContainerRecreateRequestPending
			})
		}},
		"a deadline passed over while another node had a fault": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.faultOn("node-2", "daemon-kill", 4, 30)
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
			s.complete(20, "r1", "deadline")
		}},
		"recorded after the stop, and the API server was killed before": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 2.6, 4, true)
			s.create(2, "r1", "uid-1", "c1")
			s.stop(5, "uid-1", "c1")
			s.status(5.5, "r1", recreating("c1"))
			s.succeed(6, "uid-1", "c2", "r1")
			s.audit.WriteString("{\"half\": \n")
		}},
		"not recorded before the stop, long before the API server was stopped": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.stop(5, "uid-1", "c1")
			s.fault(entry.KindAPIServerStop, 30, 60, true)
			s.complete(61, "r1", "deadline")
		}},
		"stopped 500 times": {want: "volume", proof: "stopped 500 times", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			for n := range 500 {
				s.call(3+float64(n)/50, "StopContainer", "c1", "Unavailable", 0.01)
			}
			s.complete(20, "r1", "the runtime does not answer")
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
		"crash of a sidecar": {want: "crash", proof: "exit code 2", plant: func(s *fixture) {
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 2, Reason: "Error", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a sidecar that cannot be started, and nothing is broken": {want: "crash", proof: "StartError", plant: func(s *fixture) {
			s.faultOn("node-2", entry.KindKubeletRestart, 5, 7)
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 128, Reason: "StartError", FinishedAt: metav1.NewTime(at(6))})
		}},
		"ended without SIGTERM, before its grace period was over": {want: "grace", proof: "without SIGTERM", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.call(3, "StopContainer", "c1", "OK", 0.1)
			s.succeed(4, "uid-1", "c2", "r1")
		}},
		"a deadline passed over while a manager was away": {want: "I5", proof: "after its deadline", plant: func(s *fixture) {
			s.fault(entry.KindManagerKill, 4, 30, true)
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
			s.complete(20, "r1", "deadline")
		}},
		"the status of another object is written without a pause": {want: "volume", proof: "written 101 times within 10s", plant: func(s *fixture) {
			for n := range 101 {
				s.write(10+float64(n)/20, ref{"patch", daemonUser, "nodepodprobes", "status", "", "node-1"}, 409, nil)
			}
		}},
		"the daemon changes a label of a pod": {want: "I11", proof: "has changed its labels", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.pod(2.5, "uid-1", "c1", true)
			s.writePatch(3, ref{"patch", daemonUser, "pods", "status", "chaos", "pod-uid-1"}, 200, map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}}, s.pods["uid-1"])
			s.complete(4, "r1", "deadline")
		}},
		"marks without a change of what a command says": {want: "I8", proof: "marked 9 times for 1 turns", plant: func(s *fixture) {
			s.faultOn("node-2", entry.KindRuntimeRestart, 5, 20)
			s.faultOn("node-1", entry.KindCall, 5, 8)
			s.turn(4, "uid-1", entry.AskedByExec, true)
			for n := range 9 {
				s.mark(5+float64(n), "uid-1", []corev1.ConditionStatus{"True", "False"}[n%2])
			}
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
		"an application that is killed by nobody, with kubelet's word on it": {want: "I1", proof: "kubelet reports exit code 137, OOMKilled", plant: func(s *fixture) {
			s.pod(4, "uid-1", "c2", true)
			s.pods["uid-1"].Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ContainerID: "containerd://" + id("c1"), ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.NewTime(at(0)), FinishedAt: metav1.NewTime(at(3)),
			}
			s.write(4.1, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-1"}, 200, s.pods["uid-1"])
			s.app(3.5, "uid-1", "start")
		}},
		"a stop of an instance that kubelet has not reported explains the end of no other": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			unreported(s)
			s.app(9, "uid-1", "SIGTERM")
		}},
		"a start that failed although the runtime was not restarted": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.startFailed()
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
