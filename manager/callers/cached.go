package callers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/cache/trim"
)

// PodPart returns what is needed of cached pods to know which callers are pods: their addresses.
func PodPart() trim.Part { return trim.Part{Keep: keepAddresses, Bound: keepAddresses} }

// keepAddresses keeps one address of each family: podIP has a single one.
func keepAddresses(kept, pod *corev1.Pod) {
	kept.Spec.HostNetwork, kept.Status.PodIP = pod.Spec.HostNetwork, pod.Status.PodIP
	if ips := pod.Status.PodIPs; len(ips) > 1 {
		kept.Status.PodIPs = slices.Clone(ips[:2])
	}
}
