package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1alpha1"
)

// A PodProbeMarker that was written in v1beta1 is probed as one in v1alpha1, which the programs read.
func TestMarkerInV1beta1IsProbed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("game", shell("sh", obedient))
	pod.Labels = map[string]string{"app": "game"}
	s.start(pod)
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: s.namespace}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{probing("idle", "sh", command("test", "-e", "/shared/idle"))}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(marker)
	s.check(err, "encode the marker")
	written := &unstructured.Unstructured{Object: content}
	written.SetAPIVersion("apps.kruise.io/v1beta1")
	written.SetKind("PodProbeMarker")
	unstructured.RemoveNestedField(written.Object, "status")
	s.check(s.Create(t.Context(), written), "make the marker in v1beta1")
	s.shows("game", "idle="+string(corev1.ConditionFalse))
	s.exec("game", "sh", "touch /shared/idle")
	s.shows("game", "idle="+string(corev1.ConditionTrue))
}
