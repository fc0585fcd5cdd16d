package v1beta1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReadinessHold is one reason for a pod not to be ready. Condition KruisePodReady keeps a sorted JSON list of them in its
// message. Every writer adds and removes its own, and the condition is True when the list is empty.
//
// +kubebuilder:object:generate=false
type ReadinessHold struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// maxHolds bounds the message in bytes: a hold has at most some hundreds.
const maxHolds = 64 << 10

// HoldOfInPlaceUpdate is the hold of an update of a pod in place.
var HoldOfInPlaceUpdate = ReadinessHold{UserAgent: "InPlaceUpdate", Key: "kubectl-refit"}

// ReadReadinessHolds reads the list from condition KruisePodReady. It is empty if the condition is nil or has no message.
// The error means that the list, which other programs write too, is not readable.
func ReadReadinessHolds(gate *corev1.PodCondition) ([]ReadinessHold, error) {
	if gate == nil || gate.Message == "" {
		return nil, nil
	}
	if len(gate.Message) > maxHolds {
		return nil, fmt.Errorf("read the message of pod condition %s: it has %d bytes, at most %d", gate.Type, len(gate.Message), maxHolds)
	}
	var holds []ReadinessHold
	if err := json.Unmarshal([]byte(gate.Message), &holds); err != nil { // may quote the text without a bound
		return nil, fmt.Errorf("read the message of pod condition %s: it is not a list of holds in JSON", gate.Type)
	}
	return holds, nil
}

// WriteReadinessHolds returns the message with the sorted list.
func WriteReadinessHolds(holds []ReadinessHold) string {
	if len(holds) == 0 {
		return "[]"
	}
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b ReadinessHold) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	text, err := json.Marshal(holds)
	if err != nil { // strings can always be encoded
		return "[]"
	}
	return string(text)
}
