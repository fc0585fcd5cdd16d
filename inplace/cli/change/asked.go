package change

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/reported"
)

// Asked returns the images, quantities, labels and annotations that the change sets, even if the pod already has them.
func (c Change) Asked(pod *corev1.Pod) (plan.Changes, error) {
	blank := plan.Template(pod)
	blank.Labels, blank.Annotations = nil, nil
	for _, container := range All(blank) {
		container.Image, container.Resources.Requests, container.Resources.Limits = "", nil, nil
	}
	if err := c(blank); err != nil {
		return plan.Changes{}, err
	}
	changes := plan.Changes{Labels: pointers(blank.Labels), Annotations: pointers(blank.Annotations)}
	for i, container := range All(blank) {
		change := plan.Change{Container: container.Name, Sidecar: i < len(blank.Spec.InitContainers), Image: container.Image}
		if requests, limits := plan.Rounded(container.Resources.Requests), plan.Rounded(container.Resources.Limits); len(requests)+len(limits) > 0 {
			change.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
		}
		if change.Image != "" || change.Resources != nil {
			changes.Containers = append(changes.Containers, change)
		}
	}
	return changes, nil
}

func pointers(values map[string]string) map[string]*string {
	list := map[string]*string{}
	for key, value := range values {
		list[key] = &value
	}
	return list
}

// Restarted returns the containers that get an image or an environment by the change.
func Restarted(pod *corev1.Pod, asked plan.Changes) []string {
	var names []string
	for _, change := range asked.Containers {
		if change.Image != "" {
			names = append(names, change.Container)
		}
	}
	for _, container := range All(plan.Template(pod)) {
		if slices.ContainsFunc(reported.MetadataEnvs(container), func(env reported.MetadataEnv) bool {
			of := asked.Labels
			if env.Annotation {
				of = asked.Annotations
			}
			return of[env.Key] != nil
		}) && !slices.Contains(names, container.Name) {
			names = append(names, container.Name)
		}
	}
	return names
}

// Resizes reports whether the change sets resources.
func Resizes(asked plan.Changes) bool {
	return slices.ContainsFunc(asked.Containers, func(c plan.Change) bool { return c.Resources != nil })
}

// Different describes, for each part of the change that the pod does not have, what the pod has instead.
func Different(pod *corev1.PodTemplateSpec, asked plan.Changes) []string {
	var texts []string
	for _, change := range asked.Containers {
		container := plan.Find(&pod.Spec, change.Container)
		if container == nil {
			continue
		}
		if change.Image != "" && container.Image != change.Image {
			texts = append(texts, fmt.Sprintf("container %s has image %s, not %s", container.Name, container.Image, change.Image))
		}
		if change.Resources != nil {
			texts = append(texts, otherQuantities(container.Name, "requests", container.Resources.Requests, change.Resources.Requests)...)
			texts = append(texts, otherQuantities(container.Name, "limits", container.Resources.Limits, change.Resources.Limits)...)
		}
	}
	texts = append(texts, otherValues("label", pod.Labels, asked.Labels)...)
	return append(texts, otherValues("annotation", pod.Annotations, asked.Annotations)...)
}

func otherQuantities(container, list string, has, want corev1.ResourceList) []string {
	var texts []string
	for _, name := range Sorted(want) {
		is, ok := has[name]
		wanted := want[name]
		if !ok || is.Cmp(wanted) != 0 {
			texts = append(texts, fmt.Sprintf("container %s has %s.%s=%s, not %s", container, list, name, is.String(), wanted.String()))
		}
	}
	return texts
}

func otherValues(what string, has map[string]string, want map[string]*string) []string {
	var texts []string
	for _, key := range Sorted(want) {
		if is, ok := has[key]; !ok || is != *want[key] {
			texts = append(texts, fmt.Sprintf("%s %s is %q, not %q", what, key, is, *want[key]))
		}
	}
	return texts
}

// Sorted returns the keys of a map in order.
func Sorted[K ~string, V any](m map[K]V) []K {
	names := make([]K, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
