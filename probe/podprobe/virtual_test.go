package podprobe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// probesOnVirtualNode are the annotations with the probes of a pod, and the names of those that are left out.
func probesOnVirtualNode(pod *corev1.Pod, markers []podprobe.Marker) (map[string]string, []string) {
	fields, left := podprobe.DesiredOnVirtualNode(pod, markers, noon)
	return fields.Annotations, left
}

// The protocol: an array of {name, containerName, podConditionType, probe}, without policies.
func TestPodOnAVirtualNodeGetsItsProbes(t *testing.T) {
	t.Parallel()
	only := marker("second", func(m *v1alpha1.PodProbeMarker) {
		labels := probe("labels")
		labels.PodConditionType = ""
		m.Spec.Probes = append(m.Spec.Probes, probe("more"), labels)
	})
	got, left := probesOnVirtualNode(pod("a"), compile(marker("first"), only))
	want := map[string]string{
		"kruise.io/podprobemarker-list": "first,second",
		"kruise.io/podprobe": `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"game.kruise.io/idle"},` +
			`{"name":"more","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"game.kruise.io/more"}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(left) > 0 {
		t.Errorf("left out %q, annotations (-want +got):\n%s", left, diff)
	}
	if got, left := probesOnVirtualNode(pod("a"), nil); len(got)+len(left) > 0 {
		t.Errorf("without markers: %v, left out %q", got, left)
	}
}

func TestPodOnAVirtualNodeGetsOnlyProbesOfItsContainers(t *testing.T) {
	t.Parallel()
	mixed := marker("mixed", func(m *v1alpha1.PodProbeMarker) {
		elsewhere, absent := probe("elsewhere"), probe("absent")
		elsewhere.ContainerName, absent.ContainerName = "sidecar", "absent"
		m.Spec.Probes = []v1alpha1.PodContainerProbe{absent, elsewhere, probe("idle"), httpProbe("port", intstr.FromString("nowhere"))}
	})
	got, left := probesOnVirtualNode(pod("a"), compile(mixed))
	want := `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"game.kruise.io/idle"}]`
	if got["kruise.io/podprobe"] != want || len(left) > 0 {
		t.Errorf("left out %q, annotation %s", left, got["kruise.io/podprobe"])
	}
	only := marker("only", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].ContainerName = "absent" })
	if got, _ := probesOnVirtualNode(pod("a"), compile(only)); len(got) > 0 {
		t.Errorf("a marker without a container of the pod: %v", got)
	}
}

func TestTheAnnotationIsBounded(t *testing.T) {
	t.Parallel()
	many := func(name string, count, size int) v1alpha1.PodProbeMarker {
		return marker(name, func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = nil
			for i := range count {
				p := probe(fmt.Sprintf("%s%d", name, i))
				p.Probe.Exec.Command = []string{strings.Repeat("x", size)}
				m.Spec.Probes = append(m.Spec.Probes, p)
			}
		})
	}
	for name, tc := range map[string]struct {
		markers    []podprobe.Marker
		want, left int
	}{
		"by bytes":  {compile(many("m", 10, 15<<10)), 4, 6},
		"by number": {compile(many("a", 100, 1), many("b", 100, 1), many("c", 100, 1)), 256, 44},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations, left := probesOnVirtualNode(pod("a"), tc.markers)
			text := annotations["kruise.io/podprobe"]
			var probes []v1alpha1.PodContainerProbe
			if err := json.Unmarshal([]byte(text), &probes); err != nil || len(text) > 65<<10 || len(probes) != tc.want || len(left) != tc.left {
				t.Errorf("%d bytes, %d probes, %d left out, %v", len(text), len(probes), len(left), err)
			}
			all := 0
			for _, m := range tc.markers {
				all += len(m.Probes)
			}
			if last := tc.markers[len(tc.markers)-1]; all != tc.want+tc.left || left[len(left)-1] != podprobe.FullName(last.Name, last.Probes[len(last.Probes)-1].Name) {
				t.Errorf("of %d probes, left out are %q", all, left)
			}
		})
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
			got, _ := podprobe.DesiredOnVirtualNode(there, compile(marker("m")), noon)
			if diff := cmp.Diff(tc.labels, got.Labels); diff != "" || got.Annotations[cost] != tc.cost {
				t.Errorf("deletion cost %q, labels (-want +got):\n%s", got.Annotations[cost], diff)
			}
			if len(got.Conditions) > 0 || got.Annotations["kruise.io/podprobe"] == "" {
				t.Errorf("conditions %v, annotations %v", got.Conditions, got.Annotations)
			}
		})
	}
}

// A condition says what one probe has found; marks of another one must not follow it.
func TestOneProbeWritesAConditionOfAVirtualPod(t *testing.T) {
	t.Parallel()
	second := func(command, label string) v1alpha1.PodProbeMarker {
		return marker("second", func(m *v1alpha1.PodProbeMarker) {
			p := &m.Spec.Probes[0]
			p.Probe.Exec.Command = []string{command}
			p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{label: "yes"}}}
		})
	}
	there := pod("a", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side"}) })
	there.Status.Conditions = append(there.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionTrue})
	elsewhere := second("idle", "side")
	elsewhere.Spec.Probes[0].ContainerName = "side"
	for name, tc := range map[string]struct {
		second v1alpha1.PodProbeMarker
		labels map[string]string
		left   []string
	}{
		"another probe":     {second("other", "other"), map[string]string{"free": "yes"}, []string{"second#idle"}},
		"another container": {elsewhere, map[string]string{"free": "yes"}, []string{"second#idle"}},
		"the same probe":    {second("idle", "too"), map[string]string{"free": "yes", "too": "yes"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, left := podprobe.DesiredOnVirtualNode(there, compile(marker("first"), tc.second), noon)
			if diff := cmp.Diff(tc.labels, got.Labels) + cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("labels and probes left out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVirtual(t *testing.T) {
	t.Parallel()
	if !podprobe.VirtualNode(map[string]string{"type": "virtual-kubelet"}) || podprobe.VirtualNode(map[string]string{"type": "spot"}) || podprobe.VirtualNode(nil) {
		t.Error("virtual nodes are those with the label type=virtual-kubelet")
	}
}

// The webhook that has set the annotations is no manager of fields: they are taken over, so that they go with the marker.
func TestAnnotationsFromTheCreationAreTakenOver(t *testing.T) {
	t.Parallel()
	markers := compile(marker("m"))
	created := pod("a", func(p *corev1.Pod) {
		p.Annotations = podprobe.AtCreation(p, markers)
		p.Annotations["idle"] = "set by the user"
	})
	desired, _ := podprobe.DesiredOnVirtualNode(created, markers, noon)
	if diff := cmp.Diff(podprobe.AtCreation(created, markers), desired.Annotations); diff != "" {
		t.Fatalf("(-at creation +on the node):\n%s", diff)
	}
	planned := planOf(t, created, desired, nil)
	if !planned.Changed || len(planned.Apply.Annotations) != 2 {
		t.Errorf("planned %+v", planned)
	}
	taken := applied(t, created, planned.Apply)
	if planned := planOf(t, taken, desired, &desired); planned.Changed {
		t.Errorf("applied again: %+v", planned)
	}
	if planned := planOf(t, taken, podprobe.Fields{}, &desired); !planned.Changed || len(planned.Apply.Annotations) != 0 {
		t.Errorf("without the marker: %+v", planned)
	}
	if got := podprobe.AtCreation(created, nil); len(got) != 0 {
		t.Errorf("without a marker: %v", got)
	}
}
