package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	if w.rounds(20); w.progressing() != "True Completed" {
		t.Errorf("%s", w.progressing())
	}
}
