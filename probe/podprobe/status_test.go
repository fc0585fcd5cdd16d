package podprobe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe/podprobe"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	other := pod("other", func(p *corev1.Pod) { p.Labels["app"] = "web" })
	lacking := func(name string) *corev1.Pod {
		return pod(name, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" })
	}
	large := func(name string) v1alpha1.PodProbeMarker {
		return marker(name, func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = nil
			for i := range v1alpha1.MaxProbesOfMarker {
				m.Spec.Probes = append(m.Spec.Probes, probe(fmt.Sprint("p", i)))
			}
		})
	}
	tooLarge := func(p *corev1.Pod) { p.Spec.Containers = nil } // as the cache keeps it
	for name, tc := range map[string]struct {
		others  []v1alpha1.PodProbeMarker
		edit    func(*v1alpha1.PodProbeMarker)
		pods    []*corev1.Pod
		omitted map[types.UID]bool
		probes  map[types.UID]map[string]bool
		delayed map[string]string
		matched int64
		status  metav1.ConditionStatus
		reason  string
		words   string
		delay   string // message of the condition Delayed
	}{
		"no pods":    {pods: []*corev1.Pod{other}, status: "True", reason: "NoPods"},
		"all probed": {pods: []*corev1.Pod{pod("a"), pod("b"), other}, matched: 2, status: "True", reason: "Probing"},
		"container missing": {
			pods: []*corev1.Pod{lacking("c"), pod("a"), lacking("b")}, matched: 3, status: "False", reason: "ContainerOrPortNotFound",
			words: "2 of 3 pods lack the container or port of a probe, for example: pod b has no container main",
		},
		"container of two probes missing": {
			edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = append(m.Spec.Probes, probe("more")) },
			pods: []*corev1.Pod{lacking("c"), pod("a")}, matched: 2, status: "False", reason: "ContainerOrPortNotFound", words: "1 of 2 pods lack",
		},
		"faulty": {
			edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" },
			pods: []*corev1.Pod{pod("a")}, matched: 1, status: "False", reason: "InvalidSpec", words: "spec.probes[0].podConditionType",
		},
		"faulty at great length": {
			edit: func(m *v1alpha1.PodProbeMarker) {
				for i := range 50 {
					p := probe(fmt.Sprint("p", i))
					p.PodConditionType = "Ready"
					m.Spec.Probes = append(m.Spec.Probes, p)
				}
			},
			pods: []*corev1.Pod{pod("a")}, matched: 1, status: "False", reason: "InvalidSpec", words: "spec.probes[1].podConditionType",
		},
		"faulty, and a container is missing": {
			edit: func(m *v1alpha1.PodProbeMarker) {
				m.Spec.Probes = append(m.Spec.Probes, probe("more"))
				m.Spec.Probes[1].PodConditionType = "Ready"
			},
			pods: []*corev1.Pod{lacking("a")}, matched: 1, status: "False", reason: "InvalidSpec", words: "spec.probes[1].podConditionType",
		},
		"faulty, without pods": {
			edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" }, status: "False", reason: "InvalidSpec",
		},
		"a container is missing, and no room is left": {
			others: []v1alpha1.PodProbeMarker{large("a"), large("b"), large("c")},
			pods:   []*corev1.Pod{lacking("a"), pod("b")}, matched: 2, status: "False", reason: "ContainerOrPortNotFound", words: "1 of 2 pods lack",
		},
		"no room is left, and left out of the NodePodProbe": {
			others: []v1alpha1.PodProbeMarker{large("a"), large("b"), large("c")}, omitted: map[types.UID]bool{"uid-a": true},
			pods: []*corev1.Pod{pod("a")}, matched: 1, status: "False", reason: "TooManyProbes", words: "1 of 1 pods have more than 256 probes",
		},
		"no room is left by those before": {
			others: []v1alpha1.PodProbeMarker{large("a"), large("b"), large("c")},
			pods:   []*corev1.Pod{pod("a"), pod("b"), other}, matched: 2, status: "False", reason: "TooManyProbes",
			words: "2 of 2 pods have more than 256 probes",
		},
		"those after it have no room": {
			others: []v1alpha1.PodProbeMarker{large("a"), large("b"), large("n")},
			pods:   []*corev1.Pod{pod("a"), other}, matched: 1, status: "True", reason: "Probing",
		},
		"left out of the NodePodProbe": {
			pods: []*corev1.Pod{pod("a"), pod("b"), other}, omitted: map[types.UID]bool{"uid-a": true, "uid-other": true},
			matched: 2, status: "False", reason: "TooManyProbes", words: "1 of 2 pods are not probed",
		},
		"too large for the cache, and probed": {
			pods: []*corev1.Pod{pod("a", tooLarge), pod("b")}, probes: map[types.UID]map[string]bool{"uid-a": {"m#idle": true}},
			matched: 2, status: "True", reason: "Probing",
		},
		"too large for the cache, and not probed": {
			pods:    []*corev1.Pod{pod("d", tooLarge), pod("c", tooLarge), pod("b", tooLarge), pod("a")},
			probes:  map[types.UID]map[string]bool{"uid-b": {"m#idle": true}, "uid-c": {"another#idle": true}},
			matched: 4, status: "Unknown", reason: "PodTooLarge", words: "2 of 4 pods are too large for the cache of refit-manager, and their nodes do not have all probes of the marker: " +
				"it is not known whether the pods have the containers and ports, for example: pod c",
		},
		"on a node with too many exec probes": {
			pods: []*corev1.Pod{pod("a"), pod("b", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }), other}, delayed: map[string]string{"node-1": "3 times"},
			matched: 2, status: "True", reason: "Probing", delay: "exec probes of 1 of 2 pods are delayed, for example on node node-1: 3 times",
		},
		"on several such nodes, whichever is seen first": {
			pods: []*corev1.Pod{
				pod("c", func(p *corev1.Pod) { p.Spec.NodeName = "node-3" }), pod("a"), pod("b", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }),
			}, delayed: map[string]string{"node-1": "3 times", "node-2": "4 times", "node-3": "5 times"},
			matched: 3, status: "True", reason: "Probing", delay: "exec probes of 3 of 3 pods are delayed, for example on node node-1: 3 times",
		},
		"http probes beside them": {
			edit: func(m *v1alpha1.PodProbeMarker) {
				m.Spec.Probes = []v1alpha1.PodContainerProbe{httpProbe("p", intstr.FromInt32(80))}
			},
			pods: []*corev1.Pod{pod("a")}, delayed: map[string]string{"node-1": "3 times"}, matched: 1, status: "True", reason: "Probing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := marker("m")
			if tc.edit != nil {
				tc.edit(&m)
			}
			around := podprobe.Surroundings{Markers: compile(append(tc.others, m)...), Pods: tc.pods, Omitted: tc.omitted, Probes: tc.probes, Delayed: tc.delayed}
			got := podprobe.Status(&m, around, noon)
			ready := got.Conditions[0]
			if got.MatchedPods != tc.matched || got.ObservedGeneration != 1 || ready.Type != "Ready" || ready.Status != tc.status ||
				ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.words) || len(ready.Message) > result.MaxMessage {
				t.Errorf("%+v", got)
			}
			delay := ""
			if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProbesDelayed); c != nil && c.Status == "True" {
				delay = c.Message
			}
			if delay != tc.delay {
				t.Errorf("delay %q, want %q", delay, tc.delay)
			}
			m.Status = got
			if diff := cmp.Diff(got, podprobe.Status(&m, around, noon.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later nothing has changed (-then +now):\n%s", diff)
			}
			around.Delayed = nil
			later := podprobe.Status(&m, around, noon.Add(time.Hour))
			if c := meta.FindStatusCondition(later.Conditions, v1alpha1.ConditionProbesDelayed); (c != nil) != (tc.delay != "") || c != nil && c.Status != "False" {
				t.Errorf("when the delay has ended: %+v", c)
			}
		})
	}
}
