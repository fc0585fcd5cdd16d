package foreign

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Pod returns an error with the field of a pod whose quantity is not readable: the API server accepts exponents that
// [Quantity] does not. It checks the quantities that Refit compares, prints or computes with, in the spec and in the
// status.
func Pod(pod *corev1.Pod) error {
	if err := Spec(&pod.Spec); err != nil {
		return err
	}
	status := &pod.Status
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range statuses {
			if err := checkList("allocatedResources", statuses[i].AllocatedResources); err != nil {
				return fmt.Errorf("status of container %s: %w", statuses[i].Name, err)
			}
			if statuses[i].Resources == nil {
				continue
			}
			if err := CheckResources(*statuses[i].Resources); err != nil {
				return fmt.Errorf("status of container %s: resources.%w", statuses[i].Name, err)
			}
		}
	}
	return nil
}

// Spec is Pod for the spec of a pod.
func Spec(spec *corev1.PodSpec) error {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if err := CheckResources(containers[i].Resources); err != nil {
				return fmt.Errorf("container %s: resources.%w", containers[i].Name, err)
			}
		}
	}
	if spec.Resources != nil {
		if err := CheckResources(*spec.Resources); err != nil {
			return fmt.Errorf("spec.resources.%w", err)
		}
	}
	return checkList("spec.overhead", spec.Overhead)
}
