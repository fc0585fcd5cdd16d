package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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

// Kubelet calls the time between two pulls of an image that is missing a crash back-off, because it has stopped the container before.
func TestPodWhoseImageIsMissingHasFailedDuringTheBackOffToo(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.edit(image("app:2"))
		for w.images()["app:2"] == 0 {
			w.controller()
			w.look(-1)
		}
		before := map[string]string{}
		waits := func(reason string) {
			w.controller()
			w.now = w.now.Add(time.Second)
			for _, pod := range w.pods {
				if pod.Spec.Containers[0].Image != "app:2" {
					continue
				}
				status := &pod.Status.ContainerStatuses[0]
				if before[pod.Name] == "" {
					before[pod.Name] = status.ContainerID
				}
				status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: before[pod.Name]}
				status.State, status.Ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}, false
				w.condition(pod, false)
			}
			w.look(-1)
		}
		waits("ErrImagePull")
		w.policy.Spec.MaxUnavailable = new(intstr.FromInt32(2))
		for _, reason := range []string{"CrashLoopBackOff", "ErrImagePull", "CrashLoopBackOff", "ImagePullBackOff"} {
			waits(reason)
			if f := w.policy.Status.Failures; len(f) != 1 || f[0].Reason == "CrashLoopBackOff" || w.progressing() != "False PodsFailed" || w.images()["app:2"] != 1 {
				t.Errorf("%s, %s: %s, failures %+v, images %v", kind, reason, w.progressing(), f, w.images())
			}
		}
		w.edit(image("app:3"))
		if waits("CrashLoopBackOff"); w.policy.Status.FailedPods != 0 {
			t.Errorf("%s: failures of another template: %+v", kind, w.policy.Status.Failures)
		}
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
