package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

// reportOf waits until the annotation runtime-containers-meta tells of the running instance of a container, made from
// the pod as it is, and fails the test unless it tells the truth.
func (s *fixture) reportOf(name, container string) *corev1.Pod {
	s.t.Helper()
	var pod *corev1.Pod
	var report v1beta1.RuntimeContainerMeta
	s.await("report of the running instance of "+container, func(ctx context.Context) (bool, error) {
		pod, report = &corev1.Pod{}, v1beta1.RuntimeContainerMeta{}
		if err := s.Get(ctx, s.key(name), pod); err != nil {
			return false, err
		}
		var set v1beta1.RuntimeContainerMetaSet
		if text := pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta]; text != "" {
			if err := json.Unmarshal([]byte(text), &set); err != nil {
				return false, err
			}
		}
		for _, c := range set.Containers {
			if c.Name == container {
				report = c
			}
		}
		is := status(pod, container)
		return is.State.Running != nil && report.ContainerID == is.ContainerID && report.Hashes.ExtractedEnvFromMetadataHash == reported.ExpectedEnvHash(&pod.Spec.Containers[0], pod), nil
	})
	spec := &pod.Spec.Containers[0]
	if got, want := fmt.Sprintf("%x", report.Hashes.PlainHash), kubelet.ContainerHash(spec); got != want {
		s.t.Errorf("plainHash %s, want %s, kubelet's", got, want)
	}
	if restarts := status(pod, container).RestartCount; report.RestartCount != restarts {
		s.t.Errorf("restartCount %d, want %d", report.RestartCount, restarts)
	}
	return pod
}

// TestEnvironmentChangesRestartOnce plays a controller of OpenKruise that updates a pod in place: it closes the readiness
// gate and writes annotations and the image, and the node's daemon and kubelet do the rest.
func TestEnvironmentChangesRestartOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", level(shell("app", obedient)), shell("other", obedient))
	pod.Annotations = map[string]string{"level": "info"}
	s.gated(pod)
	before := s.reportOf("web", "app")

	s.gate("web", corev1.ConditionFalse)
	s.run("annotate", "pod", "web", "--overwrite", "level=debug")
	s.replaced(before, "app")
	after := s.reportOf("web", "app")
	s.restarted(before, "app", 1)
	s.untouched(before, "other")
	if got := s.exec("web", "app", "echo $LEVEL"); strings.TrimSpace(got) != "debug" {
		t.Errorf("LEVEL is %q", got)
	}

	both := `{"metadata":{"annotations":{"level":"warn"}},"spec":{"containers":[{"name":"app","image":"` + newImage + `"}]}}`
	s.run("patch", "pod", "web", "--type=strategic", "--patch="+both)
	s.replaced(after, "app")
	s.reportOf("web", "app")
	s.restarted(after, "app", 1)
	s.untouched(before, "other")
	if got := s.exec("web", "app", "echo $LEVEL; cat /etc/image-tag"); strings.Join(strings.Fields(got), " ") != "warn 1.35" {
		t.Errorf("LEVEL and image are %q", got)
	}
	// The second stop was kubelet's alone.
	stops := 0
	for _, message := range s.events(t.Context(), "Killing") {
		if strings.Contains(message, "its environment from labels and annotations") {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("the daemon has stopped %d containers, want 1", stops)
	}
	s.gate("web", corev1.ConditionTrue)
	s.awaitPod("web", "to be ready", podReady)
}

// A pod that nobody updates in place costs no write.
func TestOtherPodsAreNotReported(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	plain := s.start(s.podOf("plain", level(shell("app", obedient))))
	gated := on(plain.Spec.NodeName, s.podOf("gated", level(shell("app", obedient))))
	s.gated(gated)
	s.reportOf("gated", "app") // the daemon of the node has seen both by now
	is := &corev1.Pod{}
	s.check(s.Get(t.Context(), client.ObjectKeyFromObject(plain), is), "get pod")
	if text, ok := is.Annotations[v1beta1.AnnotationRuntimeContainersMeta]; ok {
		t.Errorf("reported of: %s", text)
	}
}
