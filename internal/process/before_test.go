package process_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/process"
)

func TestBeforeProgram(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	native := func(change func(*corev1.Pod)) *corev1.Pod {
		probe := &corev1.Probe{}
		probe.HTTPGet = &corev1.HTTPGetAction{Path: "/readyz"}
		pod := &corev1.Pod{}
		pod.Spec.InitContainers = []corev1.Container{{Name: "refit-sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), StartupProbe: probe}}
		pod.Spec.Containers = []corev1.Container{{Name: "app"}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "refit-sidecar", State: running, Started: new(false)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
		change(pod)
		return pod
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"pod not read":                     {nil, false},
		"first start":                      {native(func(*corev1.Pod) {}), true},
		"no status yet":                    {native(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), true},
		"program ended long ago":           {native(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://1" }), true},
		"program runs":                     {native(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = running }), false},
		"start-up probe succeeded":         {native(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].Started = new(true) }), false},
		"no start-up probe":                {native(func(p *corev1.Pod) { p.Spec.InitContainers[0].StartupProbe = nil }), false},
		"probe that asks another":          {native(func(p *corev1.Pod) { p.Spec.InitContainers[0].StartupProbe.HTTPGet.Path = "/healthz" }), false},
		"an init container that runs once": {native(func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }), false},
		"another sidecar holds up the program": {native(func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, p.Spec.InitContainers[0])
			p.Spec.InitContainers[0].StartupProbe, p.Spec.InitContainers[1].Name = nil, "mesh"
		}), false},
		"after an init container": {native(func(p *corev1.Pod) {
			p.Spec.InitContainers = append([]corev1.Container{{Name: "setup"}}, p.Spec.InitContainers...)
			p.Status.InitContainerStatuses = append([]corev1.ContainerStatus{{Name: "setup", Started: new(true)}}, p.Status.InitContainerStatuses...)
		}), true},
		"kubelet does not say whether it has started": {native(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].Started = nil }), true},
		"beside the program": {native(func(p *corev1.Pod) {
			p.Spec.Containers, p.Spec.InitContainers = append(p.Spec.Containers, p.Spec.InitContainers...), nil
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := process.Before(tc.pod, "refit-sidecar"); got != tc.want {
				t.Errorf("Before is %t, want %t", got, tc.want)
			}
		})
	}
}
