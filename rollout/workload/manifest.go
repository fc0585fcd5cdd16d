package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

// manifestFields are the fields by which workloads are held, as far as manifests may name them: with the prefix "f:" of
// managedFields.
type manifestFields struct {
	Spec struct {
		Paused         any `json:"f:paused"`
		UpdateStrategy struct {
			Type          any `json:"f:type"`
			RollingUpdate struct {
				Partition any `json:"f:partition"`
			} `json:"f:rollingUpdate"`
		} `json:"f:updateStrategy"`
	} `json:"f:spec"`
}

// lastApplied is the same in the manifest that kubectl apply keeps.
type lastApplied struct {
	Spec struct {
		Paused         any `json:"paused"`
		UpdateStrategy struct {
			Type          any `json:"type"`
			RollingUpdate struct {
				Partition any `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
}

// named says which field that holds the workload a manifest names, and who applies it; "" if none does. Only manifests that are
// applied count: tools that compare them with the workload show a difference while it is held.
func (w *Workload) named() string {
	field := map[string]string{"Deployment": "spec.paused", "StatefulSet": "spec.updateStrategy.rollingUpdate.partition", "DaemonSet": "spec.updateStrategy.type"}[w.Kind]
	pick := func(paused, partition, strategy any) bool {
		return map[string]any{"Deployment": paused, "StatefulSet": partition, "DaemonSet": strategy}[w.Kind] != nil
	}
	for _, entry := range w.ManagedFields {
		var fields manifestFields
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil || foreign.Object(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if s := fields.Spec; pick(s.Paused, s.UpdateStrategy.RollingUpdate.Partition, s.UpdateStrategy.Type) {
			return fmt.Sprintf("the manifest that %s applies names %s", entry.Manager, field)
		}
	}
	var applied lastApplied
	if text := w.Annotations[corev1.LastAppliedConfigAnnotation]; text == "" || foreign.Object([]byte(text), &applied) != nil {
		return ""
	}
	if s := applied.Spec; pick(s.Paused, s.UpdateStrategy.RollingUpdate.Partition, s.UpdateStrategy.Type) {
		return "the manifest that is applied names " + field
	}
	return ""
}
