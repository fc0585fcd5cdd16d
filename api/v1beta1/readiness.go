package v1beta1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReadinessHold is one reason for a pod not to be ready. Condition KruisePodReady keeps a JSON list of them, sorted,
// in its message; every writer adds and removes its own, and the condition is True when none is left.
//
// +kubebuilder:object:generate=false
type ReadinessHold struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// HoldOfInPlaceUpdate is held by an update of a pod in place.
var HoldOfInPlaceUpdate = ReadinessHold{UserAgent: "InPlaceUpdate", Key: "kubectl-refit"}

// ReadReadinessHolds reads the list from condition KruisePodReady; a condition that is nil or has no message has none. The error is
// a list that another writer has left unreadable.
func ReadReadinessHolds(gate *corev1.PodCondition) ([]ReadinessHold, error) {
	if gate == nil || gate.Message == "" {
		return nil, nil
	}
	var holds []ReadinessHold
	if err := json.Unmarshal([]byte(gate.Message), &holds); err != nil {
		return nil, fmt.Errorf("read the message of pod condition %s: %w", gate.Type, err)
	}
	return holds, nil
}

// WriteReadinessHolds is the message with the list, sorted.
func WriteReadinessHolds(holds []ReadinessHold) string {
	if len(holds) == 0 {
		return "[]"
	}
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b ReadinessHold) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	text, err := json.Marshal(holds)
	if err != nil { // strings always marshal
		return "[]"
	}
	return string(text)
}
