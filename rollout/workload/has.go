package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/plan"
)

// Has reports whether a pod has the present template. It compares only the fields of the update, because it is called for all
// pods: a plan would copy and compare each pod. A pod from a cache must be complete enough for that, see [Comparable].
func (f *Fields) Has(pod *corev1.Pod) bool {
	for _, c := range f.update.Containers {
		has, wanted := plan.Find(&pod.Spec, c.Name), plan.Find(&f.template.Spec, c.Name)
		switch {
		case has == nil || wanted == nil: // the plan of the templates has refused that
		case c.Image && has.Image != wanted.Image, c.Resources && !sameResources(has, wanted, c.ResourceNames):
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
