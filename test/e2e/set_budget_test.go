package e2e_test

import (
	"strings"
	"sync"
	"testing"
)

// Three commands that share nothing but the API server took out three of three pods.
func TestCommandsForPodsOfOneDeploymentNeverTakeOutTwo(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 3, obedient, 8)
	s.endpoints.await(3)
	pods := s.pods(t.Context())
	said, codes := make([]string, len(pods)), make([]int, len(pods))
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			said[i], codes[i] = s.set("image", "pod/"+pods[i].Name, "app="+newImage, "--timeout=5m")
		})
	}
	all.Wait()
	waited := 0
	for i := range pods {
		if codes[i] != 0 {
			t.Errorf("pod %s: exit code %d:\n%s", pods[i].Name, codes[i], said[i])
		}
		if strings.Contains(said[i], " waits: ") {
			waited++
		}
	}
	if waited < 2 {
		t.Errorf("%d of 3 commands have waited:\n%s", waited, strings.Join(said, "\n"))
	}
	for _, pod := range s.pods(t.Context()) {
		if len(pod.Annotations["refit.dev/disruption-claim"]) > 0 || pod.Spec.Containers[0].Image != newImage {
			t.Errorf("pod %s: image %s, annotations %v", pod.Name, pod.Spec.Containers[0].Image, pod.Annotations)
		}
	}
	s.kept()
}
