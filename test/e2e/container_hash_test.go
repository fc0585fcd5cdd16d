package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/kubelet"
)

// TestContainerHashIsKubelets compares what kubelet itself has written for containers of several shapes with our own
// computation: name and image count, and nothing else of the spec.
func TestContainerHashIsKubelets(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	full := shell("full", obedient)
	full.Env = []corev1.EnvVar{{Name: "A", Value: "<&>"}}
	full.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	full.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	full.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	full.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	full.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
	pod := s.podOf("web", shell("app", obedient), shell("a-rather-long-name-of-a-container-0123456789", obedient), full)
	sidecar := shell("mesh", obedient)
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers = []corev1.Container{sidecar, shell("setup", "exit 0")}
	pod = s.start(pod)
	runtime := s.runtime(pod)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range containers {
			runs, err := runtime.ContainerStatus(t.Context(), instance(t, pod, c.Name))
			s.check(err, "get status of container %s", c.Name)
			if want := kubelet.ContainerHash(&c); runs.Hash != want {
				t.Errorf("container %s: kubelet's hash is %q, ours %q", c.Name, runs.Hash, want)
			}
			t.Logf("name %s, image %s: %s", c.Name, c.Image, runs.Hash)
		}
	}
}
