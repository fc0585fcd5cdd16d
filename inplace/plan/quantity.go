package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AsStored converts requests and limits to what the API server stores (its defaulting of ResourceList and Pod):
// quantities rounded up to a thousandth, and a request of CPU or memory if there is only a limit. It replaces the
// lists, which may be shared with another object.
func AsStored(resources *corev1.ResourceRequirements) {
	resources.Requests, resources.Limits = Rounded(resources.Requests), Rounded(resources.Limits)
	for name, limit := range resources.Limits {
		if _, ok := resources.Requests[name]; ok || name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

// Rounded returns the list with quantities rounded up to a thousandth, as the API server stores them.
func Rounded(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	rounded := corev1.ResourceList{}
	for name, quantity := range list {
		quantity = quantity.DeepCopy()
		quantity.RoundUp(resource.Milli)
		rounded[name] = quantity
	}
	return rounded
}
