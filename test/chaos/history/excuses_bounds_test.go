package history_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// An excuse holds for what its fault can explain, and no longer.
func TestPlantedBugsBesideFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"never recorded, as the next version shows, although the API server was killed": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.fault(entry.KindAPIServerKill, 2.6, 4, true)
			s.stop(5, "uid-1", "c1")
			s.complete(8, "r1", "deadline")
		}},
		"not recorded before the stop, 8 s before the API server was killed": {want: "I1", proof: "before its ID was stored", plant: func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.stop(5, "uid-1", "c1")
			s.fault(entry.KindAPIServerKill, 13, 15, true)
			s.write(16, ref{"delete", user, "containerrecreaterequests", "", "chaos", "r1"}, 200, nil)
		}},
		"succeeded long after kubelet's newest report, and the API server was killed before that": {want: "I4", proof: "kubelet reported no other", plant: func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.fault(entry.KindAPIServerKill, 2.6, 3, true)
			s.stop(3.1, "uid-1", "c1")
			s.app(4, "uid-1", "start")
			s.pod(4.1, "uid-1", "c1", false)
			s.status(5, "r1", recreating("c1"))
			s.complete(15, "r1", "")
		}},
		"told to end by nobody, on a node that is lost later": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.app(5, "uid-1", "SIGTERM")
			s.faultOn("node-1", entry.KindNodeLost, 20, 90)
			s.app(85, "uid-1", "start")
			s.pod(86, "uid-1", "c2", true)
		}},
		"ended by nobody when its node was back": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindNodeLost, 20, 100)
			s.app(85, "uid-1", "start")
			s.app(95, "uid-1", "start")
			s.pod(96, "uid-1", "c3", true)
		}},
		"written 1,000 times while pods of others were deleted": {want: "volume", proof: "written 1002 times", plant: func(s *fixture) {
			restart(s, 2, "r1", "c1", "c2")
			for n := range 250 {
				s.fault("pod-delete", float64(n)/3, 110, false)
			}
			for n := range 1000 {
				s.write(10+float64(n)/10, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 200, s.requests["r1"])
			}
		}},
		"a turn that is not followed long after an outage": {want: "I8", proof: "says True 10s after", plant: func(s *fixture) {
			s.mark(2, "uid-1", "True")
			s.fault("apiserver-pause", 3, 10, true)
			s.turn(12, "uid-1", "http", false)
			s.mark(55, "uid-1", "False")
		}},
		"a daemon that ends without being told to": {want: "crash", proof: "exit code 0", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindDaemonKill, 5, 8)
			s.ended("refit-daemon-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 0, Reason: "Completed", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a daemon that hangs, so that kubelet ends it, a while after it was killed": {want: "crash", proof: "exit code 137", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindDaemonKill, 0, 1)
			s.ended("refit-daemon-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 137, Reason: "Error", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a manager that hangs while a daemon is killed": {want: "crash", proof: "exit code 137", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindDaemonKill, 5, 8)
			s.ended("refit-manager-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 137, Reason: "Error", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a sidecar of whose end the runtime knows nothing, although it was not away": {want: "crash", proof: "exit code 255", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindSidecarKill, 5, 8)
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 255, Reason: "Unknown", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a sidecar that nobody has killed ends while the runtime is away": {want: "crash", proof: "exit code 255", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindRuntimeRestart, 5, 8)
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 255, Reason: "Unknown", FinishedAt: metav1.NewTime(at(6))})
		}},
		"a command that was not run and is not asked again": {want: "I8", proof: "says False 10s after", plant: func(s *fixture) {
			s.mark(2, "uid-1", "False")
			s.turn(5, "uid-1", entry.AskedByExec, true)
			s.mark(6, "uid-1", "True")
			s.faultOn("node-1", entry.KindCall, 12, 16)
			s.mark(13, "uid-1", "False", "ProbeUnknown")
			s.mark(28, "uid-1", "True")
		}},
		"a command that is not run although the runtime works": {want: "I8", proof: "says False 10s after", plant: func(s *fixture) {
			s.mark(2, "uid-1", "False")
			s.turn(5, "uid-1", entry.AskedByExec, true)
			s.mark(6, "uid-1", "True")
			s.mark(13, "uid-1", "False", "ProbeUnknown")
			s.mark(16, "uid-1", "True")
		}},
		"a turn that is not followed while only calls to the runtime go wrong": {want: "I8", proof: "says True 10s after", plant: func(s *fixture) {
			s.mark(2, "uid-1", "True")
			s.faultOn("node-1", entry.KindCall, 3, 25)
			s.turn(5, "uid-1", "http", false)
			s.mark(22, "uid-1", "False")
			s.turn(24, "uid-1", "http", true)
			s.mark(26, "uid-1", "True")
		}},
		"a pod that kubelet has not reported is told to end, and nobody has deleted it": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.unreportedPod(4, "uid-8")
			s.app(5, "uid-8", "start")
			s.app(9, "uid-8", "SIGTERM")
		}},
		"a pull long after the deletion of its job, while writes of others took long": {want: "I9", proof: "job chaos/a", plant: func(s *fixture) {
			s.pullJob(2, "a")
			s.deletePullJob(5, "a")
			s.slowWrite(7, 5, "imagepulljobs")
			s.pull(17, "a", "NotFound")
		}},
		"removed long after the request had ended, and the stop before it": {want: "I1", proof: "RemoveContainer before its ID was stored", plant: func(s *fixture) {
			s.stopBeyondItsDeadline(0.5)
			s.call(9, "RemoveContainer", "c1", "OK", 0.1)
		}},
		"ended by nobody, and the runtime was restarted after it had started": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindRuntimeRestart, 1.5, 4)
			s.start(8, "uid-1", "c2")
		}},
		"told to end, and the runtime was restarted while it started, without a word of kubelet": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 5.9, 9)
			s.app(6, "uid-1", "start")
			s.app(20, "uid-1", "SIGTERM")
		}},
		"told to end and ended, and the runtime was restarted long before it started": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 1, 2)
			s.app(6, "uid-1", "start")
			s.app(20, "uid-1", "SIGTERM")
			s.app(20.1, "uid-1", "exit signal")
			s.startError(23, "uid-1", "c2", 20)
		}},
		"succeeded without an application, long after a restart of the runtime": {want: "I4", proof: "the application was not running", plant: func(s *fixture) {
			s.succeededUnseen(8)
			s.faultOn("node-1", entry.KindRuntimeRestart, 3, 5)
		}},
		"a rollout of many pods that has not ended minutes after the last fault": {want: "I13", proof: "after the last fault", plant: func(s *fixture) {
			s.fault(entry.KindManagerKill, 5, 20, true)
			s.rollout(2, "create", "", 0, 1)
			s.rollout(3, "patch", "", 30, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); found(t, test) })
	}
}

func TestWhatEndsWithItsNodeIsExcused(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.faultOn("node-1", entry.KindNodeLost, 20, 100)
	s.app(21, "uid-1", "start") // the fault begins before the processes end
	s.app(85, "uid-1", "start")
	s.pod(86, "uid-1", "c2", true)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v; want neither", report.Violations, report.Refused)
	}
}

func TestWhatFaultsExplain(t *testing.T) {
	t.Parallel()
	ended := corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 137, Reason: "Error", FinishedAt: metav1.NewTime(at(5))}
	for name, play := range map[string]func(*fixture){
		"a turn that is followed when clients are back after an outage": func(s *fixture) {
			s.mark(2, "uid-1", "True")
			s.fault("apiserver-pause", 3, 10, true)
			s.turn(12, "uid-1", "http", false)
			s.mark(45, "uid-1", "False")
		},
		"a pod that is deleted before kubelet has reported it": func(s *fixture) {
			s.unreportedPod(4, "uid-8")
			s.app(5, "uid-8", "start")
			s.deletePod(8, "uid-8")
			s.app(9, "uid-8", "SIGTERM")
		},
		"a pull after the deletion of its job, which took long to be written": func(s *fixture) {
			s.pullJob(2, "a")
			s.deletePullJob(5, "a")
			s.slowWrite(7, 5, entry.NodeImageResource)
			s.pull(17, "a", "NotFound")
		},
		"removed when the stop returned, after the request had ended": func(s *fixture) {
			s.stopBeyondItsDeadline(4)
			s.call(8, "RemoveContainer", "c1", "OK", 0.1)
		},
		"a start that a restart of the runtime has broken off": func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 5.9, 9)
			s.app(6, "uid-1", "start")
			s.start(12, "uid-1", "c3")
		},
		"a start that was broken off, and ended by kubelet": func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 5.9, 9)
			s.app(6, "uid-1", "start")
			s.app(20, "uid-1", "SIGTERM")
			s.startError(23, "uid-1", "c2", 22)
			s.start(25, "uid-1", "c3")
		},
		"a start that was broken off, whose program ran until kubelet ended it": func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 5.9, 9)
			s.app(6, "uid-1", "start")
			s.app(20, "uid-1", "SIGTERM")
			s.app(20.1, "uid-1", "exit signal")
			s.startError(23, "uid-1", "c2", 20)
			s.start(25, "uid-1", "c3")
		},
		"a start whose answer a restart of the runtime has lost, and that kubelet ended and repeated at once": func(s *fixture) {
			s.app(5, "uid-1", "exit crash")
			s.faultOn("node-1", entry.KindRuntimeRestart, 5.9, 9)
			s.startFailed()
		},
		"succeeded before a restart of the runtime ended the program that had begun": func(s *fixture) {
			s.succeededUnseen(8)
			s.faultOn("node-1", entry.KindRuntimeRestart, 7.5, 9)
		},
		"killed by the run": func(s *fixture) {
			s.faultOn("node-1", entry.KindDaemonKill, 5.9, 8)
			s.ended("refit-daemon-abcde", ended)
		},
		"with its pod": func(s *fixture) {
			s.pod(5, "uid-3", "f1", false)
			s.pods["uid-3"].DeletionTimestamp = &metav1.Time{Time: at(4)}
			s.pods["uid-3"].Status.ContainerStatuses[0].State.Terminated = &ended
			s.write(6, ref{"patch", kubeletUser, "pods", "status", "refit-system", "refit-manager-abcde"}, 200, s.pods["uid-3"])
		},
		"a sidecar that was killed while the runtime was restarted": func(s *fixture) {
			s.faultOn("node-1", entry.KindSidecarKill, 2, 50)
			s.faultOn("node-1", entry.KindRuntimeRestart, 3, 7)
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 255, Reason: "Unknown", FinishedAt: metav1.NewTime(at(5))})
		},
		"a sidecar that was killed": func(s *fixture) {
			s.faultOn("node-1", entry.KindSidecarKill, 5.5, 8)
			s.sidecarEnded(ended)
		},
	} {
		t.Run(name, func(t *testing.T) { clean(t, play) })
	}
}

// startFailed is an instance that runs although kubelet could not start its container, and the next one two seconds later.
func (s *fixture) startFailed() {
	s.t.Helper()
	s.app(6, "uid-1", "start")
	s.app(7.8, "uid-1", "SIGTERM")
	s.app(7.81, "uid-1", "exit signal")
	s.pod(7.9, "uid-1", "c2", false)
	pod := s.pods["uid-1"].DeepCopy()
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError"}}
	s.write(8, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-1"}, 200, pod)
	s.start(8, "uid-1", "c3")
}

// unreportedPod is one that has been created, and of which kubelet has said nothing.
func (s *fixture) unreportedPod(seconds float64, uid string) {
	s.t.Helper()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion = "chaos", "pod-"+uid, types.UID(uid), "90"
	s.write(seconds, ref{"create", user, "pods", "", "chaos", ""}, 201, pod)
}

// slowWrite is a write of the manager that takes so many seconds.
func (s *fixture) slowWrite(seconds, took float64, resource string) {
	s.t.Helper()
	s.line(&s.audit, map[string]any{
		"kind": "Event", "stage": "ResponseComplete", "verb": "patch", "user": map[string]any{"username": managerUser},
		"objectRef":      map[string]string{"resource": resource, "name": "node-1", "apiGroup": "apps.kruise.io"},
		"responseStatus": map[string]int{"code": 200}, "requestReceivedTimestamp": at(seconds), "stageTimestamp": at(seconds + took),
	})
}

// stopBeyondItsDeadline is a request that ends by its deadline in the 5th second, and its stop, which begins in the 3rd.
func (s *fixture) stopBeyondItsDeadline(took float64) {
	s.t.Helper()
	s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(3))
	s.call(3, "StopContainer", "c1", "OK", took)
	s.app(3.01, "uid-1", "SIGTERM")
	s.status(5.1, "r1", failedBy(5.1, "DeadlineExceeded"))
	s.start(10, "uid-1", "c2")
}

// succeededUnseen is a success for a container that kubelet calls ready and that has written no line.
func (s *fixture) succeededUnseen(seconds float64) {
	s.t.Helper()
	s.begin(2, 2.1, "r1", "uid-1", "c1")
	s.stop(2.2, "uid-1", "c1")
	s.app(2.22, "uid-1", "exit signal")
	s.pod(seconds, "uid-1", "c2", true)
	s.complete(seconds+0.1, "r1", "")
	s.start(seconds+5, "uid-1", "c3")
}
