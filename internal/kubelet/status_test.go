package kubelet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

func TestStatusIsFoundAmongContainersAndInitContainers(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", ContainerID: "1"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "setup", ContainerID: "2"}, {Name: "mesh", ContainerID: "3"}},
	}}
	for name, want := range map[string]string{"app": "1", "mesh": "3"} {
		if got := kubelet.StatusOf(pod, name); got == nil || got.ContainerID != want {
			t.Errorf("%s: %+v, want container %s", name, got, want)
		}
	}
	if got := kubelet.StatusOf(pod, "other"); got != nil {
		t.Errorf("a container that is not reported: %+v", got)
	}
	kubelet.StatusOf(pod, "mesh").Ready = true
	if !pod.Status.InitContainerStatuses[1].Ready {
		t.Error("what was returned is a copy")
	}
}

func TestPodIsReadyIfItsConditionIsTrue(t *testing.T) {
	t.Parallel()
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: kind, Status: status}}
	}
	for name, test := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"none":    {nil, false},
		"true":    {condition(corev1.PodReady, corev1.ConditionTrue), true},
		"false":   {condition(corev1.PodReady, corev1.ConditionFalse), false},
		"unknown": {condition(corev1.PodReady, corev1.ConditionUnknown), false},
		"another": {condition(corev1.ContainersReady, corev1.ConditionTrue), false},
	} {
		if got := kubelet.Ready(&corev1.Pod{Status: corev1.PodStatus{Conditions: test.conditions}}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// With kubelet's own message no sync follows the write, and kubelet writes Ready True again: see TestDrainedPodStaysNotReady of test/e2e.
func TestDrainMessageIsNotKubelets(t *testing.T) {
	t.Parallel()
	const gate = "KruisePodReady"
	if kubelet.DrainMessage(gate) == kubelet.GateMessage(gate) {
		t.Errorf("both are %q", kubelet.GateMessage(gate))
	}
}

// Similar text that an application writes is its log.
func TestLogIsGoneOnlyIfKubeletSaysSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"unable to retrieve container logs for containerd://0123abcd":             true,
		"unable to retrieve container logs for containerd://0123abcd\n":           true,
		"unable to retrieve container logs for app: no such file":                 false,
		"unable to retrieve container logs for containerd://0123abcd\nretrying\n": false,
		"E: unable to retrieve container logs for containerd://0123abcd":          false,
		"": false,
	} {
		if got := kubelet.LogIsGone(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestContainersAreFoundByTheirNames(t *testing.T) {
	t.Parallel()
	statuses := []corev1.ContainerStatus{{Name: "a", RestartCount: 1}, {Name: "b", RestartCount: 2}}
	containers := []corev1.Container{{Name: "a", Image: "1"}, {Name: "b", Image: "2"}}
	for i, name := range []string{"a", "b"} {
		if got := kubelet.StatusIn(statuses, name); got != &statuses[i] {
			t.Errorf("status of %s: %+v", name, got)
		}
		if got := kubelet.ContainerIn(containers, name); got != &containers[i] {
			t.Errorf("container %s: %+v", name, got)
		}
	}
	if kubelet.StatusIn(statuses, "c") != nil || kubelet.ContainerIn(containers, "c") != nil {
		t.Error("something is found of a container that is not there")
	}
}
