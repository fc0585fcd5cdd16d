package plan

import corev1 "k8s.io/api/core/v1"

// qosClass returns the QoS class that the API server computes from the spec (Kubernetes documentation, "Pod Quality of
// Service Classes"). If pod-level resources are set, they count instead of the containers' resources.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	all := []corev1.ResourceRequirements{}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			all = append(all, containers[i].Resources)
		}
	}
	if r := spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		all = []corev1.ResourceRequirements{*r}
	}
	bestEffort, guaranteed := true, true
	for _, r := range all {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			if _, requested := r.Requests[name]; !requested {
				request = limit // the default of the API server
			}
			bestEffort = bestEffort && limit.IsZero() && request.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && limit.Cmp(request) == 0
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
