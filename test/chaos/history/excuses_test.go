package history_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// lostEnd is the end of r1 by its deadline, whose answer the daemon did not get.
func lostEnd(s *fixture, second float64) {
	s.store("r1", failedBy(second, "DeadlineExceeded"))
	end := map[string]any{"status": map[string]any{"completionTime": at(second)}}
	s.writePatch(second, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, end, nil)
}

func TestExcusesOfTheSameNodeHold(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*fixture){
		"a stop of an instance that kubelet has not reported": unreported,
		"a start that fails as there is no room on the disk": func(s *fixture) {
			s.faultOn("node-1", entry.KindNodeDiskFull, 4, 30)
			startsWithoutRoom(s, "c2")
		},
		"a sidecar that ends with its deleted pod while the runtime is away": func(s *fixture) {
			s.faultOn("node-1", entry.KindRuntimeRestart, 5, 8)
			s.pod(5, "uid-3", "f1", false)
			pod := s.pods["uid-3"]
			pod.DeletionTimestamp = new(metav1.NewTime(at(6)))
			pod.Status.ContainerStatuses[0].Name = "refit-sidecar"
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{
				ContainerID: id("f1"), ExitCode: 255, Reason: "Unknown", FinishedAt: metav1.NewTime(at(6)),
			}
			s.write(6, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-3"}, 200, pod)
		},
		"a command that is not run after its turn was followed": func(s *fixture) {
			s.mark(2, "uid-1", "False")
			s.turn(5, "uid-1", entry.AskedByExec, true)
			s.mark(6, "uid-1", "True")
			s.faultOn("node-1", entry.KindDaemonKill, 8, 13)
			s.faultOn("node-1", entry.KindCall, 18, 22)
			s.mark(19, "uid-1", "False", "ProbeUnknown")
			s.mark(24, "uid-1", "True")
		},
		"a record whose line is lost as the API server is stopped": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1")
			s.store("r1", recreating("c1"))
			s.fault(entry.KindAPIServerStop, 2.6, 40, true)
			s.stop(35, "uid-1", "c1")
			s.start(36, "uid-1", "c2")
			s.complete(41, "r1", "")
		},
		"a record whose line is lost while the API server ends": func(s *fixture) {
			s.fault(entry.KindAPIServerStop, 2, 40, true)
			s.create(3, "r1", "uid-1", "c1")
			s.store("r1", recreating("c1"))
			s.stop(5, "uid-1", "c1")
			s.app(6, "uid-1", "start")
			s.pod(41, "uid-1", "c2", true)
			s.complete(41.5, "r1", "")
		},
		"an end that was stored although the API server did not say so, and is shown by a later write": func(s *fixture) {
			s.begin(2, 2.2, "r1", "uid-1", "c1")
			s.stop(2.5, "uid-1", "c1")
			s.create(2.7, "r2", "uid-1", "c1")
			s.start(3, "uid-1", "c2")
			s.store("r1", completed(4, ""))
			s.write(4, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, nil)
			s.store("r2", recreating("c1"))
			s.store("r1", func(*v1beta1.ContainerRecreateRequestStatus) {})
			s.write(5, ref{"patch", managerUser, "containerrecreaterequests", "", "chaos", "r1"}, 200, s.requests["r1"])
			s.write(5.5, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r2"}, 200, s.requests["r2"])
			s.complete(6, "r2", "")
		},
		"a sidecar whose start kubelet has broken off": func(s *fixture) {
			s.faultOn("node-1", entry.KindKubeletRestart, 5, 7)
			s.sidecarEnded(corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 128, Reason: "StartError", FinishedAt: metav1.NewTime(at(6))})
		},
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
			s.stop(5, "uid-1", "c2")
			s.fault(entry.KindAPIServerKill, 5.2, 7, true)
			s.status(7.5, "r2", func(status *v1beta1.ContainerRecreateRequestStatus) {
				status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestPending
			})
			s.succeed(8, "uid-1", "c3", "r2")
		},
		"an end that was stored although the daemon died, shown by its deletion after its time to live": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			lostEnd(s, 5.5)
			s.write(40, ref{"delete", managerUser, "containerrecreaterequests", "", "chaos", "r1"}, 200, nil)
		},
		"an end that was stored although the daemon died, shown by the next request of the pod": func(s *fixture) {
			s.create(2, "r1", "uid-1", "c1", deadline(3))
			lostEnd(s, 5.5)
			restart(s, 40, "r2", "c1", "c2")
		},
		"a container that kubelet reports 30 s after its start": func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1")
			s.stop(3, "uid-1", "c1")
			s.app(4, "uid-1", "start")
			pod := s.pods["uid-1"].DeepCopy()
			pod.ResourceVersion = "900"
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://" + id("c2")
			pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(at(4))
			s.write(34, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-1"}, 200, pod)
			s.complete(35, "r1", "")
		},
		"a replacement that was stopped for another request before kubelet said so": func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1", forced)
			s.stop(3, "uid-1", "c1")
			s.create(3.2, "r2", "uid-1", "c1", forced, deadline(4))
			s.create(3.4, "r3", "uid-1", "c1", deadline(25))
			s.succeed(4, "uid-1", "c2", "r1")
			s.status(4.4, "r2", recreating("c2"))
			s.stop(5, "uid-1", "c2")
			s.app(5.02, "uid-1", "exit signal")
			s.status(7.5, "r2", failedBy(7.5, "DeadlineExceeded"))
			s.status(7.7, "r3", recreating("c1"))
			s.status(28.5, "r3", failedBy(28.5, "DeadlineExceeded"))
		},
		"an end whose audit line is lost, shown by the next write": func(s *fixture) {
			s.begin(2, 2.5, "r1", "uid-1", "c1", deadline(10))
			s.stop(3, "uid-1", "c1")
			s.start(4, "uid-1", "c2")
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
			s.succeed(10, "uid-1", "c2", "r1")
		},
	} {
		t.Run(name, func(t *testing.T) { clean(t, play) })
	}
}
