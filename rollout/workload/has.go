package workload

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
)

// Has reports whether a pod has the present template. It compares only the fields of the update, because it is called for all
// pods: a plan would copy and compare each pod. A pod from a cache must be complete enough for that, see [Comparable].
func (f *Fields) Has(pod *corev1.Pod) bool {
	for _, c := range f.update.Containers {
		has, wanted := plan.Find(&pod.Spec, c.Name), plan.Find(&f.template.Spec, c.Name)
		switch {
		case has == nil || wanted == nil: // the plan of the templates has refused that
		case c.Image && has.Image != wanted.Image, c.Resources && !sameResources(has, wanted):
			return false
		}
	}
	return sameValues(f.update.Labels, pod.Labels, f.template.Labels) &&
		sameValues(f.update.Annotations, pod.Annotations, f.template.Annotations)
}

func sameValues(keys []string, a, b map[string]string) bool {
	for _, key := range keys {
		was, had := a[key]
		is, has := b[key]
		if had != has || was != is {
			return false
		}
	}
	return true
}

// sameResources compares requests and limits as the API server stores them. Quantities that are out of bounds are not compared.
func sameResources(a, b *corev1.Container) bool {
	if foreign.CheckResources(a.Resources) != nil || foreign.CheckResources(b.Resources) != nil {
		return false
	}
	stored, wanted := a.Resources, b.Resources
	plan.AsStored(&stored)
	plan.AsStored(&wanted)
	return apiequality.Semantic.DeepEqual(stored.Requests, wanted.Requests) && apiequality.Semantic.DeepEqual(stored.Limits, wanted.Limits)
}
