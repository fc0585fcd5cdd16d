package availabilitycheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// updates are the updates that restart containers of a pod, by SidecarSets, InPlaceUpdatePolicies and users: of images, and of labels that
// the environment refers to.
func (c *check) updates(w *workload, p *pod) []*take {
	var all []*take
	for i := 1; i < len(p.versions); i++ {
		was, is := p.versions[i-1], p.versions[i]
		if is.Subresource == entry.StatusResource {
			continue
		}
		for n := range is.Pod.Spec.Containers {
			container := &is.Pod.Spec.Containers[n]
			before := imageOf(was.Pod, container.Name)
			turned := is.User == c.Options.Manager && !sameLabels(container, was.Pod, is.Pod) && !sameLabels(container, p.startedWith(container.Name, i), is.Pod)
			if before != "" && before != container.Image || turned {
				all = append(all, c.update(w, p, i, container))
			}
		}
	}
	return all
}

// update is the one that a version of the pod begins.
func (c *check) update(w *workload, p *pod, version int, container *corev1.Container) *take {
	was, is := p.versions[version-1], p.versions[version]
	t := &take{pod: p, by: "update of " + container.Name, user: is.User, begun: podMoment(is), line: is.Line}
	if set := c.setOf(container, t.begun); set != nil && is.User == c.Options.Manager {
		t.by, t.most = "SidecarSet "+set.Name, setMost(set, w.replicas(t.begun.at, t.begun))
	} else if policy := c.policyOf(w, t.begun); policy != nil && is.User == c.Options.Manager {
		t.by, t.most = "InPlaceUpdatePolicy "+policy.Name, most(policy.Spec.MaxUnavailable, w.replicas(t.begun.at, t.begun))
		t.ignoresBudgets = policy.Spec.PodDisruptionBudgetPolicy == refitv1alpha1.PodDisruptionBudgetIgnore
	}
	before := ""
	if status := statusOf(was.Pod, container.Name); status != nil {
		before = status.ContainerID
	}
	started := p.startedWith(container.Name, version)
	_, t.back = p.replaced(t.begun, []string{container.Name}, func(v *corev1.Pod) bool {
		status := statusOf(v, container.Name)
		if status == nil || status.ContainerID == "" {
			return false
		}
		// What was set back before anything had stopped, by this update or after it.
		back := status.Image == imageOf(v, container.Name) && v.Status.ObservedGeneration == v.Generation && sameLabels(container, started, v)
		return status.ContainerID != before || back
	})
	t.over = t.back
	return t
}

// startedWith is the first version which shows the instance of a container that runs before that version.
func (p *pod) startedWith(container string, version int) *corev1.Pod {
	before := statusOf(p.versions[version-1].Pod, container)
	for _, w := range p.versions[:version-1] {
		if status := statusOf(w.Pod, container); before != nil && status != nil && status.ContainerID == before.ContainerID {
			return w.Pod
		}
	}
	return p.versions[version-1].Pod
}

// sameLabels reports whether the labels to which the environment of a container refers are the same in two versions of its pod.
func sameLabels(c *corev1.Container, a, b *corev1.Pod) bool {
	return !slices.ContainsFunc(model.Labels(c), func(label string) bool { return a.Labels[label] != b.Labels[label] })
}

func imageOf(p *corev1.Pod, container string) string {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == container {
			return p.Spec.Containers[i].Image
		}
	}
	return ""
}
