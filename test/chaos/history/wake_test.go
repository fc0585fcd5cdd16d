package history_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
)

// daemonPatches is a patch of a pod's status by the daemon.
func (s *fixture) daemonPatches(patch any) {
	s.t.Helper()
	s.pod(1, "uid-1", "c1", true)
	s.writePatch(20, ref{"patch", daemonUser, "pods", "status", "chaos", "pod-uid-1"}, 200, patch, s.pods["uid-1"])
}

func annotate(key string) any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: "x"}}}
}

func TestDaemonWritesToPodsWithoutARequest(t *testing.T) {
	t.Parallel()
	t.Run("what it reports of containers", func(t *testing.T) {
		t.Parallel()
		s := opening(t)
		s.daemonPatches(annotate(v1beta1.AnnotationRuntimeContainersMeta))
		if report := s.check(); !report.OK() {
			t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
		}
	})
	for name, patch := range map[string]any{"an annotation that wakes kubelet": annotate(v1beta1.AnnotationNudge), "anything else": []string{"a JSON patch"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, planted{want: "I2", proof: "written by the daemon without a request", plant: func(s *fixture) { s.daemonPatches(patch) }})
		})
	}
}
