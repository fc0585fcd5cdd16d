package workload_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/workload"
)

// cached returns what a cache keeps of a pod for InPlaceUpdatePolicies.
func cached(pod *corev1.Pod) *corev1.Pod {
	return trim.NewPods(trim.Part{Keep: workload.Keep, Bound: budget.Bound}).Of(pod.DeepCopy())
}

func podWith(image, cpu string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: image, Args: []string{"x"}, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	return pod
}

func TestCachedPodsCanBeComparedWithATemplate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 16<<10+1)
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"pod":                         {func(*corev1.Pod) {}, true},
		"pod that is being updated":   {func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"a"}` }, true},
		"record that is too long":     {func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationInPlaceUpdateState] = long }, false},
		"pod that is too large":       {func(p *corev1.Pod) { p.Labels = map[string]string{"a": long + long} }, false},
		"long annotation of somebody": {func(p *corev1.Pod) { p.Annotations["a"] = long }, true},
	} {
		pod := podWith("app:1", "100m")
		pod.Annotations = map[string]string{}
		tt.change(pod)
		trimmed := cached(pod)
		if got := workload.Comparable(trimmed); got != tt.want {
			t.Errorf("%s: comparable %t", name, got)
		}
		if c := trimmed.Spec.Containers; tt.want && (c[0].Image != "app:1" || c[0].Resources.Requests.Cpu().String() != "100m") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if !workload.KeepsValue("short") || workload.KeepsValue(long) {
		t.Error("which annotations are kept")
	}
}

// An image is pulled on nodes with the pull secrets and the pull policy of the pods there.
func TestACachedPodHasWhatAPullOfItsImagesNeeds(t *testing.T) {
	t.Parallel()
	pod := podWith("app:1", "100m")
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	if spec := cached(pod).Spec; len(spec.ImagePullSecrets) != 1 || spec.ImagePullSecrets[0].Name != "registry" || spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("secrets %v, policy %q", spec.ImagePullSecrets, spec.Containers[0].ImagePullPolicy)
	}
}
