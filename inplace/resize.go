package inplace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

// awaitResize returns nil if the containers have the resources in the spec, as reported by kubelet: it has observed the
// spec, it reports neither a deferred nor a running resize, and it has allocated the requested resources.
// status.resources may differ permanently, because the kernel rounds values.
func (v *view) awaitResize() *Decision {
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
	if changed := v.lastWritten(v.changed()...); !v.observed() && len(changed) > 0 { // written after the resources
		return v.awaitObserved(changed)
	}
	if !v.observed() {
		return wait("", "waiting for kubelet to see the new resources")
	}
	return v.awaitAllocation()
}

// awaitAllocation returns nil if every container runs with the requests in the spec, or else what to wait for.
func (v *view) awaitAllocation() *Decision {
	for _, containers := range [][]corev1.Container{v.pod.Spec.InitContainers, v.pod.Spec.Containers} {
		for i := range containers {
			status := kubelet.StatusOf(v.pod, containers[i].Name)
			if _, ours := v.record.State.NextContainerResources[containers[i].Name]; ours && (status == nil || status.State.Running == nil) {
				if d := v.startProblem(status); d != nil {
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

// current reports whether the condition is about the present spec, and not about an earlier one.
func (v *view) current(c *corev1.PodCondition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= v.pod.Generation
}
