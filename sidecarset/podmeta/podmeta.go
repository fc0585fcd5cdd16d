// Package podmeta has the values of annotations and labels that SidecarSets set on pods, when they are created and when their
// sidecars are updated.
package podmeta

import (
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/v1beta1"
)

// PatchAnnotation is the value of an annotation after patchPodMetadata.
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

func unchanged(a, b string) bool { return jsonpatch.Equal([]byte(a), []byte(b)) }

// ImageVersion is the value of a version label: the tag of an image, or the first 12 digits of its digest. It is empty if
// that is no value of a label.
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
