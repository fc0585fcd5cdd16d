package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Kubelet counts its back-off for each image: the former one, which ran a moment ago, is started with a delay.
func TestPodThatGoesBackHasNotFailedDuringTheBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.policy.Spec.ProgressDeadlineSeconds = new(int32(8))
	w.bad["app:2"] = true
	w.edit(image("app:2"))
	if w.rounds(20); w.progressing() != "False PodsFailed" {
		t.Fatal(w.progressing())
	}
	w.edit(image("app:1"))
	w.controller()
	w.look(-1)
	delayed := 0
	for _, pod := range w.pods {
		status := &pod.Status.ContainerStatuses[0]
		if status.Image != "app:2" {
			continue
		}
		delayed++
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: status.ContainerID}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}
	}
	if w.look(-1); delayed != 1 || w.progressing() != "True Updating" || w.policy.Status.FailedPods != 0 {
		t.Errorf("%d pods are delayed: %s, %d failed", delayed, w.progressing(), w.policy.Status.FailedPods)
	}
	w.now = w.now.Add(10 * time.Second) // the back-off may be longer than the deadline
	if w.look(-1); w.progressing() != "True Updating" || w.policy.Status.FailedPods != 0 {
		t.Errorf("after the deadline: %s, %d failed", w.progressing(), w.policy.Status.FailedPods)
	}
	for range 20 {
		if w.rounds(1); w.policy.Status.FailedPods != 0 {
			t.Fatalf("%d failed while the instance that was delayed becomes ready: %s", w.policy.Status.FailedPods, w.progressing())
		}
	}
	if w.progressing() != "True Completed" {
		t.Errorf("%s", w.progressing())
	}
}

// The back-off only moves the begin of the deadline.
func TestPodThatIsNotReadyAfterTheBackOffFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 1)
	w.policy.Spec.ProgressDeadlineSeconds = new(int32(30))
	w.edit(image("app:2"))
	for range 10 {
		w.controller()
		w.look(-1)
	}
	var pod *corev1.Pod
	for _, pod = range w.pods {
		status := &pod.Status.ContainerStatuses[0]
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: status.ContainerID}
		w.now = w.now.Add(time.Minute)
		status.Image, status.ImageID = "app:2", "id of app:2"
		w.start(pod, status)
		w.condition(pod, false)
	}
	for range 29 {
		w.now = w.now.Add(time.Second)
		if w.look(-1); w.policy.Status.FailedPods != 0 {
			t.Fatalf("%d failed: %s", w.policy.Status.FailedPods, w.progressing())
		}
	}
	w.now = w.now.Add(time.Second)
	if w.look(-1); w.policy.Status.FailedPods != 1 || w.progressing() != "False PodsFailed" {
		t.Errorf("%d failed: %s", w.policy.Status.FailedPods, w.progressing())
	}
}

// A drain may be longer than the deadline.
func TestPodDoesNotFailWhileItDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 2)
	w.edit(readinessGate)
	w.rounds(10)
	w.policy.Spec.DrainSeconds, w.policy.Spec.FailurePolicy = new(int32(900)), v1alpha1.UpdateFailureUndo
	w.edit(image("app:2"))
	for range 150 {
		w.rounds(1)
		w.now = w.now.Add(20 * time.Second)
		if w.policy.Status.FailedPods > 0 {
			t.Fatalf("%s, failures %v", w.progressing(), w.policy.Status.Failures)
		}
	}
	if w.images()["app:2"] != 2 || w.progressing() != "True Completed" {
		t.Errorf("images %v, %s", w.images(), w.progressing())
	}
}
