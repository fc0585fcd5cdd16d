package upgrade

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
)

// Reasons of the condition SidecarSetUpgradable, shared with OpenKruise.
const (
	reasonUpgradable    = "AllSidecarsetUpgradable"
	reasonNotUpgradable = "UpdateImmutableField"
)

// Condition is the condition SidecarSetUpgradable of a pod; nil if the pod has it already. Its message is a JSON object from
// the name of a SidecarSet to whether it can update the pod in place. A pod that every SidecarSet can update needs none.
func Condition(pod *corev1.Pod, sidecarSet string, upgradable bool) *corev1.PodCondition {
	said := map[string]bool{}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; string(c.Type) == v1beta1.ConditionSidecarSetUpgradable {
			var read map[string]bool
			if foreign.JSON(c.Message, &read) == nil {
				maps.Copy(said, read)
			}
		}
	}
	if was, ok := said[sidecarSet]; ok && was == upgradable || !ok && upgradable {
		return nil
	}
	said[sidecarSet] = upgradable
	condition := &corev1.PodCondition{Type: v1beta1.ConditionSidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: reasonUpgradable}
	for _, is := range said {
		if !is {
			condition.Status, condition.Reason = corev1.ConditionFalse, reasonNotUpgradable
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // a map of booleans can always be encoded
	}
	condition.Message = string(text)
	return condition
}
