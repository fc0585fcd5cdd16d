// Package podmeta computes the values of annotations and labels that SidecarSets set on pods, both when pods are
// created and when their sidecars are updated.
package podmeta

import (
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/v1beta1"
)

// PatchAnnotation returns the value of an annotation after patchPodMetadata.
func PatchAnnotation(annotations map[string]string, key, value string, policy v1beta1.PatchPolicy) (string, error) {
	had, ok := annotations[key]
	switch {
	case policy == v1beta1.PatchOverwrite, !ok, policy == v1beta1.PatchMergeJSON && had == "":
		return value, nil
	case policy != v1beta1.PatchMergeJSON:
		return had, nil
	}
	merged, err := jsonpatch.MergePatch([]byte(had), []byte(value))
	if err != nil {
		return "", err
	}
	if unchanged(had, string(merged)) {
		return had, nil
	}
	return string(merged), nil
}

// Changes returns the annotations and labels that patchPodMetadata changes in a running pod, by the same policies as in
// a new one. A value that is not valid JSON does not change.
func Changes(pod *metav1.ObjectMeta, patches []v1beta1.SidecarSetPatchPodMetadata) (annotations, labels map[string]string) {
	annotations, labels = map[string]string{}, map[string]string{}
	for i := range patches {
		patch := &patches[i]
		for key, value := range patch.Annotations {
			is, err := PatchAnnotation(pod.Annotations, key, value, patch.PatchPolicy)
			if had, ok := pod.Annotations[key]; err == nil && (!ok || had != is) {
				annotations[key] = is
			}
		}
		for key, value := range patch.Labels {
			if had, ok := pod.Labels[key]; !ok || had != value && patch.PatchPolicy == v1beta1.PatchOverwrite {
				labels[key] = value
			}
		}
	}
	return annotations, labels
}

func unchanged(a, b string) bool { return jsonpatch.Equal([]byte(a), []byte(b)) }

// ImageVersion returns the value of a version label: the tag of an image, or the first 12 digits of its digest. It
// returns "" if that is not a valid label value.
func ImageVersion(image string) string {
	rest, digest, _ := strings.Cut(image, "@")
	version := ""
	if i := strings.LastIndex(rest, ":"); i > strings.LastIndex(rest, "/") {
		version = rest[i+1:]
	} else if _, hex, ok := strings.Cut(digest, ":"); ok {
		version = hex[:min(12, len(hex))]
	} else {
		version = "latest"
	}
	if len(validation.IsValidLabelValue(version)) > 0 {
		return ""
	}
	return version
}
