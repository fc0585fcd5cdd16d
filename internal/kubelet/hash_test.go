package kubelet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/kubelet"
)

// The first value is the constant of kubelet 1.30's own test of HashContainer.
func TestHashOfAKubeletBefore131(t *testing.T) {
	t.Parallel()
	container := corev1.Container{
		Name: "test_container", Image: "foo/image:v1", Args: []string{"/bin/sh", "-c", "echo abc"}, Ports: []corev1.ContainerPort{{ContainerPort: 8001}},
	}
	if got := kubelet.WholeContainerHash(&container); got != "3c42280f" {
		t.Errorf("%s, want 3c42280f", got)
	}
	container.Args[2] = "echo def"
	if got := kubelet.WholeContainerHash(&container); got == "3c42280f" {
		t.Error("the arguments do not count")
	}
}

// The first value is the constant of kubelet's own test of HashContainer; test/e2e compares further ones with a running kubelet.
func TestContainerHash(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		container corev1.Container
		want      string
	}{
		"kubelet's own test value": {corev1.Container{Name: "test_container", Image: "foo/image:v1"}, "8e45cbd0"},
		"name and image":           {corev1.Container{Name: "app", Image: "nginx:1.25"}, "e324a2d6"},
		"other fields do not count": {corev1.Container{
			Name: "app", Image: "nginx:1.25", Command: []string{"sh"}, Env: []corev1.EnvVar{{Name: "A", Value: "B"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}, "e324a2d6"},
	}
	for name, tt := range tests {
		if got := kubelet.ContainerHash(&tt.container); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
