package podprobe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
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
	for name, tc := range map[string]struct {
		others  []v1alpha1.PodProbeMarker
		edit    func(*v1alpha1.PodProbeMarker)
		pods    []*corev1.Pod
		matched int64
		status  metav1.ConditionStatus
		reason  string
		words   string
	}{
		"no pods":    {pods: []*corev1.Pod{other}, status: "True", reason: "NoPods"},
		"all probed": {pods: []*corev1.Pod{pod("a"), pod("b"), other}, matched: 2, status: "True", reason: "Probing"},
		"container missing": {
			pods: []*corev1.Pod{lacking("c"), pod("a"), lacking("b")}, matched: 3, status: "False", reason: "ContainerOrPortNotFound",
			words: "2 of 3 pods lack the container or port of a probe, for example: pod b has no container main",
		},
		"faulty": {
			edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" },
			pods: []*corev1.Pod{pod("a")}, matched: 1, status: "False", reason: "InvalidSpec", words: "spec.probes[0].podConditionType",
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := marker("m")
			if tc.edit != nil {
				tc.edit(&m)
			}
			all := compile(append(tc.others, m)...)
			got := podprobe.Status(&m, all, tc.pods, noon)
			ready := got.Conditions[0]
			if got.MatchedPods != tc.matched || got.ObservedGeneration != 1 || ready.Type != "Ready" || ready.Status != tc.status ||
				ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.words) {
				t.Errorf("%+v", got)
			}
			m.Status = got
			if diff := cmp.Diff(got, podprobe.Status(&m, all, tc.pods, noon.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later nothing has changed (-then +now):\n%s", diff)
			}
		})
	}
}
