package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Another program that listens on the port must not get the token.
func TestASidecarIsKnownByItsNameOrProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		container corev1.Container
		want      bool
	}{
		"by name":       {corev1.Container{Name: "refit-sidecar", Image: "mirror/x"}, true},
		"by image":      {corev1.Container{Name: "files", Image: "registry.example.com/refit/refit-sidecar:v1"}, true},
		"by program":    {corev1.Container{Name: "files", Image: "nginx", Command: []string{"/refit/refit-sidecar", "--config=x"}}, true},
		"another":       {corev1.Container{Name: "web", Image: "nginx:1.29", Command: []string{"nginx"}}, false},
		"only argument": {corev1.Container{Name: "web", Image: "nginx", Args: []string{"refit-sidecar"}}, false},
	} {
		if got := isSidecar(tc.container); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
