package podprobe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// A namespace with more probes than a node can have leaves another one its share.
func TestNamespacesShareTheProbesOfANode(t *testing.T) {
	t.Parallel()
	in := func(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }
	many := func(namespace string, probes, bytes int) v1alpha1.PodProbeMarker {
		return marker("m", func(m *v1alpha1.PodProbeMarker) {
			m.Namespace, m.Spec.Probes = namespace, nil
			for i := range probes {
				p := probe(fmt.Sprint("p", i))
				p.Probe.Exec.Command = []string{strings.Repeat("x", bytes)}
				m.Spec.Probes = append(m.Spec.Probes, p)
			}
		})
	}
	for name, tc := range map[string]struct {
		pods    map[string]int // by namespace
		probes  int            // of each pod
		bytes   int            // of each probe's command
		want    map[string]int // pods that are probed
		omitted int
	}{
		"there is space for all":   {map[string]int{"a": 20, "b": 5}, 100, 1, map[string]int{"a": 20, "b": 5}, 0},
		"too many probes":          {map[string]int{"a": 100, "b": 5}, 100, 1, map[string]int{"a": 25, "b": 5}, 75},
		"too many of everybody":    {map[string]int{"a": 100, "b": 20, "c": 100}, 100, 1, map[string]int{"a": 10, "b": 10, "c": 10}, 190},
		"too many bytes":           {map[string]int{"a": 100, "b": 1}, 10, 4 << 10, map[string]int{"a": 17, "b": 1}, 83},
		"too many pods for a spec": {map[string]int{"a": 2000, "b": 5}, 1, 1, map[string]int{"a": 1019, "b": 5}, 981},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []*corev1.Pod
			var markers []v1alpha1.PodProbeMarker
			for namespace, count := range tc.pods {
				markers = append(markers, many(namespace, tc.probes, tc.bytes))
				for i := range count {
					pods = append(pods, pod(fmt.Sprintf("%s-%04d", namespace, i), in(namespace)))
				}
			}
			spec, omitted := podprobe.NodeSpec(pods, compile(markers...), nil)
			got := map[string]int{}
			for _, p := range spec.PodProbes {
				got[p.Namespace]++
			}
			for namespace, want := range tc.want {
				if got[namespace] != want {
					t.Errorf("of %s %d pods are probed, want %d", namespace, got[namespace], want)
				}
			}
			if len(omitted) != tc.omitted {
				t.Errorf("%d pods are left out, want %d", len(omitted), tc.omitted)
			}
			if again, _ := podprobe.NodeSpec(pods, compile(markers...), nil); fmt.Sprint(again) != fmt.Sprint(spec) {
				t.Error("the same pods do not give the same spec")
			}
		})
	}
}

// The names of probes are in the status again. With the longest ones the status would not fit into the object beside the spec, and no
// result of the node could be written any more.
func TestProbesOfANodeLeaveSpaceForTheirResults(t *testing.T) {
	t.Parallel()
	long := marker(strings.Repeat("m", 253), func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Probes = nil
		for i := range v1alpha1.MaxProbesOfMarker {
			p := probe("x")
			p.Name, p.PodConditionType = fmt.Sprintf("%03d%s", i, strings.Repeat("<", 250)), fmt.Sprint("example.com/p", i)
			m.Spec.Probes = append(m.Spec.Probes, p)
		}
	})
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, pod(fmt.Sprint("p", i)))
	}
	spec, omitted := podprobe.NodeSpec(pods, compile(long), nil)
	node := v1alpha1.NodePodProbe{Spec: spec}
	for _, p := range spec.PodProbes {
		status := v1alpha1.PodProbeStatus{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
		for _, one := range p.Probes {
			result := state(v1alpha1.ProbeSucceeded, "")
			result.Name = one.Name
			status.ProbeStates = append(status.ProbeStates, result)
		}
		node.Status.PodProbeStatuses = append(node.Status.PodProbeStatuses, status)
	}
	content, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(content); size > 1300<<10 || size < 1000<<10 {
		t.Errorf("%d bytes with the results of %d pods; %d are left out", size, len(spec.PodProbes), len(omitted))
	}
}

// Where there is no space for the next pod by its probes, there may be for one with more bytes and fewer probes.
func TestAPodThatDoesNotFitLeavesTheSpaceToOthers(t *testing.T) {
	t.Parallel()
	of := func(app string, probes, bytes int) v1alpha1.PodProbeMarker {
		return marker(app, func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Selector.MatchLabels["app"], m.Spec.Probes = app, nil
			for i := range probes {
				p := probe(fmt.Sprint("p", i))
				p.Probe.Exec.Command = []string{strings.Repeat("x", bytes)}
				m.Spec.Probes = append(m.Spec.Probes, p)
			}
		})
	}
	with := func(name, app string) *corev1.Pod { return pod(name, func(p *corev1.Pod) { p.Labels["app"] = app }) }
	pods := []*corev1.Pod{with("few", "few"), with("long", "long")}
	for i := range 150 {
		pods = append(pods, with(fmt.Sprintf("many-%03d", i), "many"))
	}
	spec, omitted := podprobe.NodeSpec(pods, compile(of("many", 20, 1), of("few", 10, 1), of("long", 1, 16<<10)), nil)
	if len(omitted) != 1 || omitted[0].Labels["app"] != "many" || len(spec.PodProbes) != 151 {
		t.Errorf("%d pods are probed, %d left out", len(spec.PodProbes), len(omitted))
	}
}
