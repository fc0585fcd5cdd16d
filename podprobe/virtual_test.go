package podprobe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
)

// The protocol: an array of {name, containerName, podConditionType, probe}, without policies.
func TestAPodOnAVirtualNodeIsToldOfItsProbes(t *testing.T) {
	t.Parallel()
	only := marker("second", func(m *v1alpha1.PodProbeMarker) {
		labels := probe("labels")
		labels.PodConditionType = ""
		m.Spec.Probes = append(m.Spec.Probes, probe("more"), labels)
	})
	got := podprobe.Annotations(pod("a"), compile(marker("first"), only))
	want := map[string]string{
		"kruise.io/podprobemarker-list": "first,second",
		"kruise.io/podprobe": `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"game.kruise.io/idle"},` +
			`{"name":"more","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"game.kruise.io/more"}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := podprobe.Annotations(pod("a"), nil); len(got) > 0 {
		t.Errorf("without markers: %v", got)
	}
}

func TestTheAnnotationIsBounded(t *testing.T) {
	t.Parallel()
	large := marker("m", func(m *v1alpha1.PodProbeMarker) {
		for i := range 99 {
			p := probe(fmt.Sprintf("p%d", i))
			p.Probe.Exec.Command = []string{strings.Repeat("x", 16<<10)}
			m.Spec.Probes = append(m.Spec.Probes, p)
		}
	})
	text := podprobe.Annotations(pod("a"), compile(large))["kruise.io/podprobe"]
	var probes []v1alpha1.PodContainerProbe
	if err := json.Unmarshal([]byte(text), &probes); err != nil || len(text) > 65<<10 || len(probes) != 4 {
		t.Errorf("%d bytes, %d probes, %v", len(text), len(probes), err)
	}
}

func TestMarksFollowTheConditionsOfAVirtualPod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status corev1.ConditionStatus
		labels map[string]string
		cost   string
	}{
		"not written yet": {labels: map[string]string{}},
		"true":            {status: corev1.ConditionTrue, labels: map[string]string{"free": "yes"}, cost: "-10"},
		"false":           {status: corev1.ConditionFalse, labels: map[string]string{"busy": "yes"}, cost: "10"},
		"unknown":         {status: corev1.ConditionUnknown, labels: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := pod("a")
			if tc.status != "" {
				there.Status.Conditions = append(there.Status.Conditions, corev1.PodCondition{Type: idle, Status: tc.status})
			}
			got := podprobe.WantVirtual(there, compile(marker("m")), noon)
			if diff := cmp.Diff(tc.labels, got.Labels); diff != "" || got.Annotations[cost] != tc.cost {
				t.Errorf("deletion cost %q, labels (-want +got):\n%s", got.Annotations[cost], diff)
			}
			if len(got.Conditions) > 0 || got.Annotations["kruise.io/podprobe"] == "" {
				t.Errorf("conditions %v, annotations %v", got.Conditions, got.Annotations)
			}
		})
	}
}

func TestVirtual(t *testing.T) {
	t.Parallel()
	if !podprobe.Virtual(map[string]string{"type": "virtual-kubelet"}) || podprobe.Virtual(map[string]string{"type": "spot"}) || podprobe.Virtual(nil) {
		t.Error("virtual nodes are those with the label type=virtual-kubelet")
	}
}
