package node_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/cri"
)

// victim is the ID of an instance of a pod in another namespace.
const victim = "victim-app-1"

// ContainerStatus is the runtime's.
func (w *world) ContainerStatus(_ context.Context, id string) (cri.ContainerStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == victim {
		return cri.ContainerStatus{Container: cri.Container{ID: id, Name: "app", PodNamespace: "bank", PodName: "victim", PodUID: "uid-victim"}}, nil
	}
	for _, pod := range w.pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if status.ContainerID == "containerd://"+id {
				return cri.ContainerStatus{Container: cri.Container{
					ID: id, Name: status.Name, PodNamespace: pod.Namespace, PodName: pod.Name, PodUID: string(pod.UID),
				}}, nil
			}
		}
	}
	return cri.ContainerStatus{}, cri.ErrNotFound
}

// Whoever may write the status of a pod can put the ID of a container of another pod there: no command runs in that one.
func TestNoProbeRunsInAContainerOfAnotherPod(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPodWith("a", 1, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "containerd://" + victim }, "app")
		w.putPod("b", 1, "app")
		w.want(entry("a", execProbe("p", "app", "cat /secret")), entry("b", execProbe("p", "app", "check")))
		w.run()
		w.pass(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, run := range w.execs {
			if strings.HasPrefix(run, victim) {
				t.Errorf("ran %q", run)
			}
		}
		if len(w.execs) == 0 {
			t.Error("the other pod has not been probed")
		}
	})
}
