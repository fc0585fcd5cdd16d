package history_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// lost is what the runtime says of containers that ended with their node.
func lost() corev1.ContainerStateTerminated {
	return corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 255, Reason: "Unknown"}
}

// endsWithItsNode is an application that is started again without having ended.
func endsWithItsNode(s *fixture) {
	s.app(60, "uid-1", "start")
	s.pod(61, "uid-1", "c2", true)
}

func TestContainersEndWithTheirNode(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.faultOn("node-1", entry.KindNodeLost, 2, 70)
	s.ended("refit-daemon-abcde", lost())
	endsWithItsNode(s)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

func TestPlantedEndsWhileAnotherNodeIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"the daemon":     {want: "crash", proof: "exit code 255", plant: func(s *fixture) { s.ended("refit-daemon-abcde", lost()) }},
		"an application": {want: "I1", proof: "no stop of its own explains", plant: endsWithItsNode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, planted{want: test.want, proof: test.proof, plant: func(s *fixture) {
				s.faultOn("node-2", entry.KindNodeLost, 2, 70)
				test.plant(s)
			}})
		})
	}
}

// What the daemon records in an annotation after the end, under the CRD of OpenKruise, is no change of the status, and what
// ended before the records begin is of an earlier run.
func TestEndsThatAreNoViolations(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.ended("refit-manager-abcde", corev1.ContainerStateTerminated{ContainerID: id("f1"), ExitCode: 1, Reason: "Error", FinishedAt: metav1.NewTime(at(-60))})
	restart(s, 10, "r1", "c1", "c2")
	recorded := s.requests["r1"].DeepCopy()
	s.store("r1", func(status *v1beta1.ContainerRecreateRequestStatus) {
		status.ContainerRecreateStates[0].ContainerID = ""
	})
	s.write(14, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 200, s.requests["r1"])
	s.revision++
	recorded.ResourceVersion = fmt.Sprint(s.revision)
	s.write(15, ref{"patch", daemonUser, "containerrecreaterequests", "", "chaos", "r1"}, 200, recorded)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

// A request for a node without a daemon is ended by a manager, which may have run on the node that was lost.
func TestRequestsThatAManagerEndsWaitForItsNode(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]bool{managerUser: true, daemonUser: false} {
		s := opening(t)
		s.faultOn("node-2", entry.KindNodeLost, 4, 118)
		s.create(2, "r1", "uid-1", "c1", deadline(3))
		s.store("r1", failedBy(120, "DeadlineExceeded"))
		s.write(120, ref{"patch", user, "containerrecreaterequests", "status", "chaos", "r1"}, 200, s.requests["r1"])
		if report := s.check(); report.OK() != want {
			t.Errorf("ended by %s: violations %v, refused %v", user, report.Violations, report.Refused)
		}
	}
}

// startsWithoutRoom is an application whose start fails after its first line, as kubelet says of that container, and that runs when it
// is started again.
func startsWithoutRoom(s *fixture, container string) {
	s.app(5, "uid-1", "exit crash")
	s.app(6, "uid-1", "start")
	s.pod(7, "uid-1", container, false)
	pod := s.pods["uid-1"]
	pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: "no space left on device"}
	s.write(8, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-1"}, 200, pod)
	s.start(20, "uid-1", "c3")
}

func TestPlantedEndsBesideFullDisks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"the disk of another node": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-2", entry.KindNodeDiskFull, 4, 30)
			startsWithoutRoom(s, "c2")
		}},
		"there was room again": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindNodeDiskFull, 1, 5.5)
			startsWithoutRoom(s, "c2")
		}},
		"kubelet says nothing of it": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.faultOn("node-1", entry.KindNodeDiskFull, 4, 30)
			s.start(10, "uid-1", "c2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}
