package process

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Before reports whether kubelet starts the pod's regular containers only after this sidecar is ready: it is a native
// sidecar with a startup probe of its readiness, which has not succeeded yet (KEP-753).
func Before(pod *corev1.Pod, own string) bool {
	if pod == nil {
		return false
	}
	gates := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == own && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways &&
			c.StartupProbe != nil && c.StartupProbe.HTTPGet != nil && c.StartupProbe.HTTPGet.Path == "/readyz"
	})
	started := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == own && s.Started != nil && *s.Started
	})
	// After a restart of the sidecar alone the program is still running.
	runs := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	return gates && !started && !runs
}
