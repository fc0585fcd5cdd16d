package podprobe_test

import (
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
	for name, tc := range map[string]struct {
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
			words: "2 of 3 pods lack what a probe names, as: pod b has no container main",
		},
		"faulty": {
			edit: func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" },
			pods: []*corev1.Pod{pod("a")}, matched: 1, status: "False", reason: "InvalidSpec", words: "spec.probes[0].podConditionType",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := marker("m")
			if tc.edit != nil {
				tc.edit(&m)
			}
			got := podprobe.Status(&m, tc.pods, noon)
			ready := got.Conditions[0]
			if got.MatchedPods != tc.matched || got.ObservedGeneration != 1 || ready.Type != "Ready" || ready.Status != tc.status ||
				ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.words) {
				t.Errorf("%+v", got)
			}
			m.Status = got
			if diff := cmp.Diff(got, podprobe.Status(&m, tc.pods, noon.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later nothing has changed (-then +now):\n%s", diff)
			}
		})
	}
}
