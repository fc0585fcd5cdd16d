package workload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

// holdFields are the fields by which workloads are held, by kind.
var holdFields = map[string]string{
	"Deployment": "spec.paused", "StatefulSet": "spec.updateStrategy.rollingUpdate.partition", "DaemonSet": "spec.updateStrategy.type",
}

// named returns a message if a manifest sets the field by which the workload is held, with the field and the manager that applies
// the manifest; otherwise "". Only applied manifests count: tools that compare them with the workload show a difference while it
// is held.
func (w *Workload) named() string {
	field := holdFields[w.Kind]
	for _, entry := range w.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil && names(entry.FieldsV1.GetRawBytes(), "f:", field) {
			return fmt.Sprintf("the manifest that %s applies names %s", entry.Manager, field)
		}
	}
	if names([]byte(w.Annotations[corev1.LastAppliedConfigAnnotation]), "", field) {
		return "the manifest that is applied names " + field
	}
	return ""
}

// names reports whether a JSON text has a value at a path. prefix is the prefix of its keys there.
func names(text []byte, prefix, path string) bool {
	value, err := foreign.Value(text)
	if err != nil {
		return false
	}
	for key := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[prefix+key]
	}
	return value != nil
}
