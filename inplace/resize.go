package inplace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/kubelet"
)

// resized is nil if the resources in the spec are those that the containers have, by kubelet's own account: it has seen
// the spec, it says neither that the resize waits nor that it is under way, and it has allocated what is asked for.
// status.resources may differ for good, because the kernel rounds.
func (v *view) resized() *Decision {
	if c := kubelet.Condition(&v.pod.Status, corev1.PodResizePending); c != nil && v.current(c) {
		d := blocked("", c.Reason, "the resize waits: %s", oneLine(c.Message))
		d.Final = c.Reason == corev1.PodReasonInfeasible
		return d
	}
	if c := kubelet.Condition(&v.pod.Status, corev1.PodResizeInProgress); c != nil && v.current(c) {
		if c.Reason == corev1.PodReasonError {
			return blocked("", c.Reason, "the resize failed and is tried again: %s", oneLine(c.Message))
		}
		return wait("", "waiting for kubelet to resize the containers")
	}
	if !v.observed() {
		return wait("", "waiting for kubelet to see the new resources")
	}
	return v.allocated()
}

// allocated is nil if every container runs with the requests that are in the spec.
func (v *view) allocated() *Decision {
	for _, containers := range [][]corev1.Container{v.pod.Spec.InitContainers, v.pod.Spec.Containers} {
		for i := range containers {
			status := kubelet.StatusOf(v.pod, containers[i].Name)
			if _, ours := v.record.State.NextContainerResources[containers[i].Name]; ours && (status == nil || status.State.Running == nil) {
				if d := v.hindered(status); d != nil {
					return d
				}
				return wait(containers[i].Name, "waiting for kubelet to start container %s with its new resources", containers[i].Name)
			}
			if status == nil || status.State.Running == nil || status.AllocatedResources == nil {
				continue
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				want, has := containers[i].Resources.Requests[name], status.AllocatedResources[name]
				if want.Cmp(has) != 0 {
					return wait(status.Name, "waiting for kubelet to allocate the new resources of container %s", status.Name)
				}
			}
		}
	}
	return nil
}

// current reports whether the condition is about the spec as it is, and not about one before.
func (v *view) current(c *corev1.PodCondition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= v.pod.Generation
}
