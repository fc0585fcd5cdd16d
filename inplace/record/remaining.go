package record

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/plan"
)

// Pending reports whether part of the update remains to be written to the pod.
func (r *Record) Pending() bool {
	s := &r.State
	return len(s.NextContainerImages)+len(s.NextContainerResources)+len(s.NextContainerRefMetadata) > 0
}

// Remaining returns what remains to be written according to the record. It leaves out resources that the spec already
// has, because that resize is in progress or complete.
func (r *Record) Remaining(pod *corev1.Pod) plan.Changes {
	ours := r.Extension()
	left := plan.Changes{Labels: ours.Labels, Annotations: ours.Annotations, Order: ours.Order}
	for _, list := range []struct {
		containers []corev1.Container
		init       bool
	}{{pod.Spec.InitContainers, true}, {pod.Spec.Containers, false}} {
		for i := range list.containers {
			container := &list.containers[i]
			change := plan.Change{
				Container: container.Name, Sidecar: list.init,
				Image: r.State.NextContainerImages[container.Name], Metadata: r.State.NextContainerRefMetadata[container.Name],
			}
			if resources, ok := r.State.NextContainerResources[container.Name]; ok && !hasResources(container, resources) {
				change.Resources = &resources
			}
			if change.Image != "" || change.Resources != nil || change.ChangesMetadata() {
				left.Containers = append(left.Containers, change)
			}
		}
	}
	return left
}

// Wanted returns the pod template at the end of the update in the record. A nil record means that there is no update.
func Wanted(pod *corev1.Pod, record *Record) *corev1.PodTemplateSpec {
	wanted := plan.Template(pod)
	if record == nil {
		return wanted
	}
	left := record.adopted().Remaining(pod)
	wanted.Labels, wanted.Annotations = merge(wanted.Labels, left.Labels), merge(wanted.Annotations, left.Annotations)
	for _, change := range left.Containers {
		container := plan.Find(&wanted.Spec, change.Container)
		if change.Image != "" {
			container.Image = change.Image
		}
		if change.Resources != nil {
			container.Resources.Requests = merged(container.Resources.Requests, change.Resources.Requests)
			container.Resources.Limits = merged(container.Resources.Limits, change.Resources.Limits)
		}
		wanted.Labels = merged(wanted.Labels, change.Metadata.Labels)
		wanted.Annotations = merged(wanted.Annotations, change.Metadata.Annotations)
	}
	return wanted
}

func merge(into map[string]string, changes map[string]*string) map[string]string {
	for key, value := range changes {
		if value == nil {
			delete(into, key)
		} else {
			into = put(into, key, *value)
		}
	}
	return into
}

func merged[M ~map[K]V, K comparable, V any](into, changes M) M {
	if into == nil {
		into = M{}
	}
	maps.Copy(into, changes)
	return into
}

// hasResources reports whether the container has all these resources, as the API server stores them. It may have
// additional requests.
func hasResources(container *corev1.Container, want corev1.ResourceRequirements) bool {
	has := func(list, want corev1.ResourceList) bool {
		for name, quantity := range plan.Rounded(want) {
			if got, ok := list[name]; !ok || got.Cmp(quantity) != 0 {
				return false
			}
		}
		return true
	}
	return has(container.Resources.Requests, want.Requests) && has(container.Resources.Limits, want.Limits)
}
