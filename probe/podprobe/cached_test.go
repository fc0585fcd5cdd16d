package podprobe_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

// cached returns what a cache keeps of a pod for PodProbeMarkers.
func cached(pod *corev1.Pod) *corev1.Pod {
	return trim.NewPods(trim.Part{Keep: podprobe.Keep, Bound: podprobe.Bound}).Of(pod.DeepCopy())
}

// The functions below decide, and check that the decision is the same with pods as a cache has them.

func desiredOf(t *testing.T, pod *corev1.Pod, markers []podprobe.Marker, states podprobe.States, now time.Time) podprobe.Fields {
	t.Helper()
	return same(t, podprobe.Desired(pod, markers, states, now), podprobe.Desired(cached(pod), markers, states, now))
}

func planOf(t *testing.T, pod *corev1.Pod, desired podprobe.Fields, last *podprobe.Fields) podprobe.Planned {
	t.Helper()
	return same(t, podprobe.Plan(pod, desired, last), podprobe.Plan(cached(pod), desired, last))
}

func specOf(t *testing.T, pods []*corev1.Pod, markers []podprobe.Marker) (v1alpha1.NodePodProbeSpec, []*corev1.Pod) {
	t.Helper()
	kept := make([]*corev1.Pod, len(pods))
	for i := range pods {
		kept[i] = cached(pods[i])
	}
	spec, left := podprobe.NodeSpec(pods, markers, nil)
	got, _ := podprobe.NodeSpec(kept, markers, nil)
	return same(t, spec, got), left
}

func same[T any](t *testing.T, want, got T) T {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("with the cached pod (-pod +cached):\n%s", diff)
	}
	return want
}

// A pod that is too large for the cache has no containers there. What is left says whether it has to be read.
func TestAPodThatIsTooLargeIsCountedByItsMarkers(t *testing.T) {
	t.Parallel()
	large := pod("a", func(p *corev1.Pod) {
		p.Annotations = map[string]string{}
		for i := range 1000 {
			p.Annotations[strings.Repeat("x", 60)+strconv.Itoa(i)] = "x"
		}
	})
	kept := cached(large)
	if podprobe.Complete(kept) || !podprobe.Probeable(kept) || kept.Status.PodIP != "10.0.0.1" || !compile(marker("m"))[0].Selects(kept) {
		t.Errorf("%+v", kept)
	}
	if !podprobe.Complete(cached(pod("a"))) {
		t.Error("an ordinary pod is not complete")
	}
	another := marker("another", func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector.MatchLabels["app"] = "web" })
	if !podprobe.Concerns(compile(another, marker("m")), kept) || podprobe.Concerns(compile(another), kept) {
		t.Error("a pod concerns the markers that select it, and no others")
	}
	marked := cached(applied(t, large, podprobe.Fields{Labels: map[string]string{"free": "yes"}}))
	if !podprobe.Concerns(nil, marked) || len(marked.ManagedFields) != 1 || marked.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("with a label from a marker: managed fields %+v", marked.ManagedFields)
	}
}

func TestLargeAnnotationsAreCachedOnlyWhenRefitWroteThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 257)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{"foreign": long, "owned": long, "short": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}, {
			Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:owned":{}}}}`),
		}},
	}}
	got := cached(pod)
	if diff := cmp.Diff(map[string]string{"foreign": "", "owned": long, "short": "x"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(got.ManagedFields) != 1 {
		t.Errorf("managed fields %v", got.ManagedFields)
	}
}
