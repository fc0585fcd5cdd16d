// Package managedfields reads from metadata.managedFields which fields of a pod are probe results that Refit has applied, and keeps
// objects without it that only Refit writes. Decisions about these fields must stay out.
package managedfields

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

// FieldManager is the field manager of probe results on pods. They are set by server-side apply to the status subresource.
// The API server records the fields that Refit owns, and removes the ones that are no longer applied unless another manager
// owns them too.
const FieldManager = "refit-podprobe"

// Owned are the keys and condition types of a pod that Refit owns.
type Owned struct {
	Labels, Annotations, Conditions map[string]bool
}

// OwnedBy reads Owned from metadata.managedFields.
func OwnedBy(pod *corev1.Pod) Owned {
	owned := Owned{Labels: map[string]bool{}, Annotations: map[string]bool{}, Conditions: map[string]bool{}}
	for _, entry := range pod.ManagedFields {
		if OwnEntry(entry) && entry.FieldsV1 != nil {
			owned.read(entry.FieldsV1.GetRawBytes())
		}
	}
	return owned
}

// OwnEntry reports whether an entry of managedFields belongs to FieldManager.
func OwnEntry(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "status"
}

// read parses the format FieldsV1: "f:<name>" is a field, "k:<JSON>" an element of a list by its keys.
func (o Owned) read(fields []byte) {
	var record struct {
		Metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
		Status struct {
			Conditions map[string]json.RawMessage `json:"f:conditions"`
		} `json:"f:status"`
	}
	if err := foreign.Object(fields, &record); err != nil {
		return // the API server computes it from what others have written; if it cannot be read, nothing is owned
	}
	for to, from := range map[*map[string]bool]map[string]json.RawMessage{&o.Labels: record.Metadata.Labels, &o.Annotations: record.Metadata.Annotations} {
		for field := range from {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				(*to)[key] = true
			}
		}
	}
	for field := range record.Status.Conditions {
		var element struct {
			Type string `json:"type"`
		}
		if key, ok := strings.CutPrefix(field, "k:"); ok && foreign.JSON(key, &element) == nil {
			o.Conditions[element.Type] = true
		}
	}
}
