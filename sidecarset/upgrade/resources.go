package upgrade

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// compareResources compares quantities by value, because "1" and "1000m" are equal. Changes by others since the last update, for example an
// autoscaler, are kept.
func (t *Target) compareResources(c *changes, p *progress) {
	if p.injected != nil && !t.has(p.injected) {
		if before := t.history.of(p.injected); before != nil {
			t.compareFrom(c, p, before)
		}
	}
	if t.abandoned(p) {
		if begun := t.history.only(p.record.State.Revision); begun != nil {
			t.compareFrom(c, p, begun)
		}
	}
}

// compareFrom adds the resources of containers whose sidecar has others than in the spec before.
func (t *Target) compareFrom(c *changes, p *progress, before *v1beta1.SidecarSetSpec) {
	for i := range t.sidecars {
		s := &t.sidecars[i]
		was := sidecarNamed(before, s.Name)
		if was == nil || t.ownResources(p.pod, s) || len(differing(fields(was.Resources), fields(s.Resources))) == 0 {
			continue
		}
		for _, name := range s.containers() {
			container := s.find(&p.pod.Spec, name)
			if container == nil {
				continue
			}
			has, known := c.resources[name]
			if !known {
				has = container.Resources
			}
			wanted := corev1.ResourceRequirements{
				Requests: changed(has.Requests, was.Resources.Requests, s.Resources.Requests),
				Limits:   changed(has.Limits, was.Resources.Limits, s.Resources.Limits),
			}
			if !same(container.Resources.Requests, wanted.Requests) || !same(container.Resources.Limits, wanted.Limits) {
				c.resources[name] = wanted
			}
		}
	}
}

// changed returns has with the difference between was and is applied.
func changed(has, was, is corev1.ResourceList) corev1.ResourceList {
	list := has.DeepCopy()
	for name := range was {
		if _, ok := is[name]; !ok {
			delete(list, name)
		}
	}
	for name, quantity := range is {
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = quantity
	}
	return list
}

func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
