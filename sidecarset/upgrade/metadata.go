package upgrade

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/sidecarset/podmeta"
)

// labels returns the labels of the pod that spec.patchPodMetadata changes, and the labels that name versions of sidecars.
func (t *Target) labels(pod *corev1.Pod) map[string]string {
	_, labels := podmeta.Changes(&pod.ObjectMeta, t.spec.PatchPodMetadata)
	for i := range t.sidecars {
		s := &t.sidecars[i]
		if s.VersionLabel == "" {
			continue
		}
		if value := podmeta.ImageVersion(t.image(pod, s)); value != pod.Labels[s.VersionLabel] {
			labels[s.VersionLabel] = value
		}
	}
	return labels
}
