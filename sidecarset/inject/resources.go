package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/sidecarset/expression"
)

// resources computes the resources of a container from the pod's own containers and native sidecars.
func (in *injection) resources(set *Set, name string, p *expression.Policy) (corev1.ResourceRequirements, error) {
	var targets []corev1.ResourceRequirements
	for _, c := range own(in.initContainers) {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && in.isTarget(p, c.Name) {
			targets = append(targets, c.Resources)
		}
	}
	for _, c := range own(in.containers) {
		if in.isTarget(p, c.Name) {
			targets = append(targets, c.Resources)
		}
	}
	if len(targets) == 0 {
		return corev1.ResourceRequirements{}, refuse(set.name, "spec.containers", "no container has a name that matches %q, which the resourcesPolicy of container %s is for", p.Target, name)
	}
	result, err := p.Evaluate(targets)
	if err != nil {
		return result, refuse(set.name, "spec.containers", "%v for container %s", err, name)
	}
	return result, nil
}

// isTarget reports whether a container of the pod is used in the computation. A container with the name of a sidecar is
// not, because the sidecar replaces it.
func (in *injection) isTarget(p *expression.Policy, name string) bool {
	for _, set := range in.plan.Sets {
		if set.declares(name) {
			return false
		}
	}
	return p.Target.MatchString(name)
}
