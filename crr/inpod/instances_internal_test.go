package inpod

import (
	"fmt"
	"slices"
	"strings"
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

func TestInstancesOfThePodsStatus(t *testing.T) {
	t.Parallel()
	ended := &corev1.ContainerStateTerminated{ContainerID: id(1), ExitCode: 3}
	tests := map[string]struct {
		status corev1.ContainerStatus
		want   []string
	}{
		"running":            {corev1.ContainerStatus{ContainerID: id(2), RestartCount: 4, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, []string{"running 2 4"}},
		"restarted":          {corev1.ContainerStatus{ContainerID: id(2), RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: ended}}, []string{"running 2 1", "exited 1 0"}},
		"ended":              {corev1.ContainerStatus{ContainerID: id(1), State: corev1.ContainerState{Terminated: ended}, LastTerminationState: corev1.ContainerState{Terminated: ended}}, []string{"exited 1 0"}},
		"waiting":            {corev1.ContainerStatus{ContainerID: id(1), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: corev1.ContainerState{Terminated: ended}, RestartCount: 1}, []string{"exited 1 0"}},
		"never started":      {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}, nil},
		"an ID that is none": {corev1.ContainerStatus{ContainerID: "x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, nil},
	}
	for name, tt := range tests {
		var got []string
		for _, i := range instancesOf(tt.status) {
			got = append(got, fmt.Sprintf("%s %s %d", strings.ToLower(i.State.String()), i.ID.ID[len(i.ID.ID)-1:], i.RestartCount))
		}
		if !slices.Equal(tt.want, got) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
