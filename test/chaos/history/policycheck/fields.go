package policycheck

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/test/chaos/history/model"
)

// field is what a template says of a container and can change in place: its image, its limit of CPU, or a label of the pod that its
// environment refers to.
type field struct{ container, name string }

const (
	image = "image"
	cpu   = "cpu"
)

func (f field) String() string { return f.name + " of container " + f.container }

// restarts reports whether a change of the field restarts the container.
func (f field) restarts() bool { return f.name != cpu }

// fields are all of a pod, or of a template, with their values.
func fields(object *metav1.ObjectMeta, spec *corev1.PodSpec) map[field]string {
	all := map[field]string{}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		all[field{c.Name, image}] = c.Image
		if limit, ok := c.Resources.Limits[corev1.ResourceCPU]; ok {
			all[field{c.Name, cpu}] = limit.String()
		}
		for _, label := range model.Labels(c) {
			all[field{c.Name, "label " + label}] = object.Labels[label]
		}
	}
	return all
}

func fieldsOf(p *corev1.Pod) map[field]string { return fields(&p.ObjectMeta, &p.Spec) }

// restarted reports whether a container is restarted from one to the other.
func restarted(container string, a, b map[field]string) bool {
	for f := range a {
		if f.container == container && f.restarts() && a[f] != b[f] {
			return true
		}
	}
	return false
}

// list is for messages.
func list(all map[field]string) string {
	var parts []string
	for f, value := range all {
		parts = append(parts, fmt.Sprintf("%s %s", f, value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
