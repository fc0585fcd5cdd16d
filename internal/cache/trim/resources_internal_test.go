package trim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	pods := NewPods(Part{Keep: func(kept, pod *corev1.Pod) { EachContainer(kept, pod, UpdatedFields) }})
	requests := func(pod *corev1.Pod) corev1.ResourceList { return pods.Of(pod).Spec.Containers[0].Resources.Requests }
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
