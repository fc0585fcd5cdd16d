package cache

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
)

func podWith(image, cpu string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: image, Args: []string{"x"}, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	return pod
}

func TestPodsWithTheSameResourcesShareThem(t *testing.T) {
	t.Parallel()
	requests := func(pod *corev1.Pod) corev1.ResourceList { return trimPod(pod).Spec.Containers[0].Resources.Requests }
	a, b, other := requests(podWith("app:1", "100m")), requests(podWith("app:2", "100m")), requests(podWith("app:1", "200m"))
	if reflect.ValueOf(a).Pointer() != reflect.ValueOf(b).Pointer() {
		t.Error("equal resources are not shared")
	}
	if got := other.Cpu().String(); got != "200m" || a.Cpu().String() != "100m" {
		t.Errorf("other resources are %s, the shared ones %s", got, a.Cpu())
	}
}

// Whoever may create pods must not fill the manager's memory with different resources.
func TestWhatIsSharedIsBounded(t *testing.T) {
	t.Parallel()
	s := &sharedResources{}
	for i := range 3 * maxShared {
		r := podWith("app:1", fmt.Sprintf("%dm", i+1)).Spec.Containers[0].Resources
		if got := s.intern(&r); got.Requests.Cpu().MilliValue() != int64(i+1) {
			t.Fatalf("%s instead of %dm", got.Requests.Cpu(), i+1)
		}
	}
	long := corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: strings.Repeat("x", maxSharedLength)}}}
	if got := s.intern(&long); len(got.Claims) != 1 {
		t.Errorf("%+v", got)
	}
	for encoded := range s.kept {
		if len(encoded) > maxSharedLength {
			t.Errorf("%d bytes are shared", len(encoded))
		}
	}
	if len(s.kept) > maxShared {
		t.Errorf("%d different resources are kept", len(s.kept))
	}
}

func TestCachedPodsCanBeComparedWithATemplate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxRecord+1)
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
		trimmed := trimPod(pod)
		if got := Comparable(trimmed); got != tt.want {
			t.Errorf("%s: comparable %t", name, got)
		}
		if c := trimmed.Spec.Containers; tt.want && (c[0].Image != "app:1" || c[0].Resources.Requests.Cpu().String() != "100m") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if !KeepsValue("short") || KeepsValue(long) {
		t.Error("which annotations are kept")
	}
}
