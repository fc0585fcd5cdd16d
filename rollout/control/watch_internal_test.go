package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
)

func annotated(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: "{}"} }
}

func TestRolloutsAreReconciledForPodsThatMatterToThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":         {func(*corev1.Pod) {}, false},
		"an annotation":   {func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "x"} }, false},
		"another pod":     {func(p *corev1.Pod) { p.UID = "again" }, true},
		"a deletion":      {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"a label":         {func(p *corev1.Pod) { p.Labels["app"] = "other" }, true},
		"the readiness":   {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"a new container": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://new" }, true},
		"an update":       {annotated(v1beta1.AnnotationInPlaceUpdateState), true},
		"one of sidecars": {annotated(v1beta1.AnnotationSidecarSetInPlaceUpdateState), true},
		"what runs":       {annotated(v1beta1.AnnotationRuntimeContainersMeta), true},
	} {
		before, after := podOf("web-abc", 0), podOf("web-abc", 0)
		tt.change(after)
		if got := podChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
		if tt.change(before); podChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("%s: what stays as it is counts as a change", name)
		}
	}
	if !podChanged().Update(event.UpdateEvent{ObjectOld: &corev1.ConfigMap{}, ObjectNew: podOf("web-abc", 0)}) ||
		!podChanged().Update(event.UpdateEvent{ObjectOld: podOf("web-abc", 0), ObjectNew: &corev1.ConfigMap{}}) {
		t.Error("what is not known to be a pod is dropped")
	}
}

func TestOnlyRolloutsThatHaveNotEndedFollowThePodsOfTheirNamespace(t *testing.T) {
	t.Parallel()
	ended, elsewhere := object(), object()
	ended.Name, elsewhere.Namespace = "ended", "bank"
	ended.Status.CompletionTime = &metav1.Time{Time: noon}
	a := newAPIServer(t, object(), ended, elsewhere)
	if diff := cmp.Diff([]ctrl.Request{key}, a.reconciler.active(t.Context(), podOf("web-abc", 0))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
