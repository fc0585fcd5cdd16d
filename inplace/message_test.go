package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

// The message names what kubelet has not seen: an image that is written after the resources have been applied.
func TestAnImageAfterAResizeIsNotCalledNewResources(t *testing.T) {
	t.Parallel()
	const image, resources = 1, 64
	for name, updates := range map[string][]int{"of an earlier command": {resources, image}, "of the same": {image | resources}} {
		w := pullable(newWorld(podOf(plantest.Template(), false), false))
		for i, bits := range updates {
			if i > 0 {
				w.finish(t)
			}
			if err := begin(w, bits, plan.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			if w.pod.Spec.Containers[0].Image == "app:2" {
				break
			}
			w.see()
			w.report()
			if _, err := w.next(w.pod.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		w.pod.Status.ObservedGeneration = w.pod.Generation - 1
		got, err := w.next(w.pod.DeepCopy())
		if err != nil || got.Message != "waiting for kubelet to see the change of container app" {
			t.Errorf("%s: %s: %s, %v", name, got.Kind, got.Message, err)
		}
	}
}

// kubelet calls its crash back-off a failure, also of a container that it has stopped for the update and not started yet.
func TestACrashBackoffOfAnImageThatComesBackIsNotCalledAFailure(t *testing.T) {
	t.Parallel()
	delayed := func(ended string) func(*corev1.ContainerStatus) {
		return func(status *corev1.ContainerStatus) {
			status.ContainerID, status.Ready = ended, false
			status.State = waiting("CrashLoopBackOff", "back-off 40s restarting failed container=app pod=web")
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: ended, FinishedAt: metav1.NewTime(morning)}
		}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.ContainerStatus)
		want   string
	}{
		"another container waits for one that the pod does not have": {func(status *corev1.ContainerStatus) {
			delayed("c://1")(status)
			status.Name = "gone"
		}, "container gone: back-off 40s restarting failed container=app pod=web"},
		"the replaced instance has ended": {delayed("c://1"), "container app is not started with app:2 before the end of kubelet's crash back-off, because kubelet has tried to start it " +
			"with this image within the last 10 minutes; kubectl refit restart starts it at once if the image can be pulled"},
		"the new instance has ended": {delayed("c://2"), "container app: back-off 40s restarting failed container=app pod=web"},
	} {
		pod, recorded := updatedPod()
		tt.change(&pod.Status.ContainerStatuses[0])
		if pod.Status.ContainerStatuses[0].Name == "gone" {
			recorded.State.LastContainerStatuses, recorded.State.ContainerBatchesRecord = nil, nil
			recorded.State.NextContainerImages = map[string]string{"log": "log:2"}
			recorded.State.Refit.Instances["gone"] = recorded.State.Refit.Instances["app"]
			recorded.State.Refit.After = map[string][]string{"log": {"gone"}}
		}
		got := inplace.Next(pod, recorded, nil, morning)
		if got.Kind != inplace.KindBlocked || got.Reason != "CrashLoopBackOff" || got.Message != tt.want || got.Final || !got.Again.Equal(morning.Add(40*time.Second)) || got.Delayed == (name == "the new instance has ended") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
