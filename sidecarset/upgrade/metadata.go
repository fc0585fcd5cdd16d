package upgrade

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/podmeta"
)

// labels of the pod that spec.patchPodMetadata overwrites, and those that name versions of sidecars.
func (t *Target) labels(pod *corev1.Pod) map[string]string {
	labels := map[string]string{}
	for i := range t.spec.PatchPodMetadata {
		patch := &t.spec.PatchPodMetadata[i]
		for key, value := range patch.Labels {
			if patch.PatchPolicy == v1beta1.PatchOverwrite && pod.Labels[key] != value {
				labels[key] = value
			}
		}
	}
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

// patched are the annotations of the pod that spec.patchPodMetadata changes in running pods. A value that is no JSON stays.
func (t *Target) patched(pod *corev1.Pod) map[string]string {
	annotations := map[string]string{}
	for i := range t.spec.PatchPodMetadata {
		patch := &t.spec.PatchPodMetadata[i]
		if patch.PatchPolicy != v1beta1.PatchOverwrite && patch.PatchPolicy != v1beta1.PatchMergeJSON {
			continue
		}
		for key, value := range patch.Annotations {
			is, err := podmeta.PatchAnnotation(pod.Annotations, key, value, patch.PatchPolicy)
			if had, ok := pod.Annotations[key]; err == nil && (!ok || had != is) {
				annotations[key] = is
			}
		}
	}
	return annotations
}
