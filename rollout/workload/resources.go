package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
)

// resourceLists are the requests and limits of a container, by the prefix of their names in an update.
func resourceLists(r *corev1.ResourceRequirements) map[string]*corev1.ResourceList {
	return map[string]*corev1.ResourceList{"requests.": &r.Requests, "limits.": &r.Limits}
}

// storedResources returns the requests and limits of a container as the API server stores them.
func storedResources(c *corev1.Container) corev1.ResourceRequirements {
	stored := c.Resources
	plan.AsStored(&stored)
	return stored
}

// changedResources returns the names of the requests and limits that are different, in order: "limits.cpu".
func changedResources(from, to *corev1.Container) (names []string) {
	if from == nil || to == nil {
		return nil
	}
	was, is := storedResources(from), storedResources(to)
	before := resourceLists(&was)
	for prefix, after := range resourceLists(&is) {
		for _, lists := range [][2]corev1.ResourceList{{*before[prefix], *after}, {*after, *before[prefix]}} {
			for name := range lists[0] {
				if !sameQuantity(lists[0], lists[1], name) {
					names = append(names, prefix+string(name))
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func sameQuantity(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	was, had := a[name]
	is, has := b[name]
	return had == has && was.Cmp(is) == 0
}

// setResources sets the named requests and limits of a container as in another one. Without names it sets all.
func setResources(to, from *corev1.Container, names []string) {
	if len(names) == 0 {
		from.Resources.DeepCopyInto(&to.Resources)
		return
	}
	wanted, stored := storedResources(from), storedResources(to)
	present := resourceLists(&stored)
	for prefix, list := range resourceLists(&wanted) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if slices.Contains(names, prefix+string(name)) {
				*present[prefix] = withQuantity(*present[prefix], *list, name)
			}
		}
	}
	to.Resources.Requests, to.Resources.Limits = stored.Requests, stored.Limits
}

// withQuantity returns a list in which one quantity is as in another list.
func withQuantity(list, from corev1.ResourceList, name corev1.ResourceName) corev1.ResourceList {
	quantity, has := from[name]
	if !has {
		delete(list, name)
		return list
	}
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = quantity.DeepCopy()
	return list
}

// sameResources reports whether the named requests and limits, without names all, are as the API server stores the ones of the template.
// Quantities that are out of bounds are not compared.
func sameResources(pod, template *corev1.Container, names []string) bool {
	if foreign.CheckResources(pod.Resources) != nil || foreign.CheckResources(template.Resources) != nil {
		return false
	}
	if len(names) > 0 {
		return !slices.ContainsFunc(changedResources(pod, template), func(name string) bool { return slices.Contains(names, name) })
	}
	stored, wanted := storedResources(pod), storedResources(template)
	return apiequality.Semantic.DeepEqual(stored.Requests, wanted.Requests) && apiequality.Semantic.DeepEqual(stored.Limits, wanted.Limits)
}

// resources reports whether the update changes requests or limits.
func (f *Fields) resources() bool {
	return slices.ContainsFunc(f.update.Containers, func(c v1alpha1.UpdatedContainer) bool { return c.Resources })
}
