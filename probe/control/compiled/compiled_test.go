package compiled

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

func testMarker(name string) v1alpha1.PodProbeMarker {
	marker := v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	probe := v1alpha1.PodContainerProbe{Name: "idle", ContainerName: "game", PodConditionType: "example.com/idle"}
	probe.Probe.Exec = &corev1.ExecAction{Command: []string{"/idle"}}
	marker.Spec.Probes = []v1alpha1.PodContainerProbe{probe}
	return marker
}

func TestMarkersAreCompiledOncePerGeneration(t *testing.T) {
	t.Parallel()
	var c Markers
	all := []v1alpha1.PodProbeMarker{testMarker("a"), testMarker("b")}
	all[0].UID, all[1].UID = "1", "2"
	first := c.Compile(all, true)
	all[0].Status.MatchedPods = 7 // which changes no generation
	if again := c.Compile(all, true); &again[0].Probes[0] != &first[0].Probes[0] {
		t.Error("compiled again without a change of the spec")
	}
	all[0].Spec.Probes[0].Name, all[0].Generation = "changed", 2
	if got := c.Compile(all, true)[0].Probes[0].Name; got != "changed" {
		t.Errorf("after a change the probe is %q", got)
	}
	all[1].Spec.Probes[0].Name, all[1].UID = "made again", "3" // of the same generation
	if got := c.Compile(all, true)[1].Probes[0].Name; got != "made again" {
		t.Errorf("of another marker the probe is %q", got)
	}
	before := c.Compile(all[:1], false)
	if len(c.byName) != 2 {
		t.Error("a list of one namespace has made it forget the others")
	}
	kept := c.Compile(all[:1], true)
	if len(c.byName) != 1 {
		t.Error("a deleted marker is kept")
	}
	if again := c.Compile(all[:1], true); &again[0].Probes[0] != &kept[0].Probes[0] || &kept[0].Probes[0] != &before[0].Probes[0] {
		t.Error("the others are compiled again")
	}
}
