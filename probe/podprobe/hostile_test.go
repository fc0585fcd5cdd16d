package podprobe_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/probe/podprobe"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

func TestAMarkerWithASelectorOutOfBoundsSelectsNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	m := marker("huge", func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Selector.MatchExpressions = slices.Repeat([]metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}, 10_000)
	})
	read := podprobe.NewMarker(&m)
	if read.Selects(pod("a")) || len(read.Errors) != 1 || !strings.Contains(read.Errors[0].Error(), "at most 100 labels and expressions") {
		t.Errorf("selects %v, faults %v", read.Selects(pod("a")), read.Errors)
	}
}

// FuzzMarkers makes markers, pods and their annotations of parts.
func FuzzMarkers(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	f.Fuzz(func(t *testing.T, markerSeed, podSeed []byte) {
		watchdog.Watch(t, func() {
			var m v1alpha1.PodProbeMarker
			if foreign.Object(hostile.JSON(&m, markerSeed), &m) == nil {
				read := podprobe.NewMarker(&m)
				read.Selects(pod("a"))
				if len(read.Probes) > v1alpha1.MaxProbesOfMarker {
					t.Errorf("%d probes", len(read.Probes))
				}
			}
			p := pod("a")
			var parts corev1.Pod
			if foreign.Object(hostile.JSON(&parts, podSeed), &parts) == nil {
				p.ManagedFields, p.Annotations, p.Status.Conditions = parts.ManagedFields, parts.Annotations, parts.Status.Conditions
			}
			overridden := map[string]map[string]string{}
			p.Annotations = map[string]string{v1alpha1.AnnotationOverridden: string(hostile.JSON(overridden, podSeed))}
			podprobe.Plan(p, podprobe.Fields{Labels: map[string]string{"app": "x"}}, nil)
		})
	})
}
