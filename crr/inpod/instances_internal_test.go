package inpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestInstancesOfNativeSidecarsAreFound(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: id(1), State: running}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "log", ContainerID: id(2), State: running}}
	all := instances(pod)
	for name, want := range map[string]string{"app": id(1), "log": id(2)} {
		if len(all[name]) != 1 || all[name][0].ID.String() != want {
			t.Errorf("container %s: %+v", name, all[name])
		}
	}
}
