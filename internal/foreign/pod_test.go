package foreign_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/foreign"
)

// Whoever reads the Event has to find the quantity in the pod: its field and, where there are several, its container.
func TestQuantityOfAPodIsNamed(t *testing.T) {
	t.Parallel()
	bad := corev1.ResourceList{"memory": resource.MustParse("1e2147483647")}
	for want, change := range map[string]func(*corev1.Pod){
		"": func(*corev1.Pod) {},
		"container app: resources.requests[memory]": func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests = bad },
		"container app: resources.limits[memory]":   func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Limits = bad },
		"container init: resources.limits[memory]":  func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Limits = bad },
		"spec.resources.requests[memory]":           func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: bad} },
		"spec.overhead[memory]":                     func(p *corev1.Pod) { p.Spec.Overhead = bad },
		"status of container app: allocatedResources[memory]": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "log"}, {Name: "app", AllocatedResources: bad}}
		},
		"status of container app: resources.limits[memory]": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Resources: &corev1.ResourceRequirements{Limits: bad}}}
		},
		"status of container init: resources.limits[memory]": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", Resources: &corev1.ResourceRequirements{Limits: bad}}}
		},
		"status of container debug: allocatedResources[memory]": func(p *corev1.Pod) {
			p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", AllocatedResources: bad}}
		},
	} {
		fine := corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Resources: fine}}, Containers: []corev1.Container{{Name: "log", Resources: fine}, {Name: "app"}},
		}}
		change(pod)
		err := foreign.Pod(pod)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, foreign.ErrUnreadable) || err.Error() != want+": not readable: the exponent or the number of digits of a quantity is beyond 18 or 64" {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
