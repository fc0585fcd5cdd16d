package control

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// markersOf returns the markers of an object before and after a change, if they exist, so that the pods of both are found.
func markersOf(objects ...client.Object) []podprobe.Marker {
	var all []v1alpha1.PodProbeMarker
	for _, object := range objects {
		if marker, ok := object.(*v1alpha1.PodProbeMarker); ok && marker != nil {
			alive := *marker
			alive.DeletionTimestamp = nil
			all = append(all, alive)
		}
	}
	return podprobe.Compile(all)
}

// hasProbeOf reports whether the spec has a probe of the marker with exactly this name and namespace.
func hasProbeOf(spec v1alpha1.NodePodProbeSpec, namespace, name string) bool {
	return slices.ContainsFunc(spec.PodProbes, func(pod v1alpha1.PodProbe) bool {
		return pod.Namespace == namespace && slices.ContainsFunc(pod.Probes, func(probe v1alpha1.ContainerProbe) bool {
			marker, ok := podprobe.MarkerOf(probe.Name)
			return ok && marker == name
		})
	})
}
