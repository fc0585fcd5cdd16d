package upgrade

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Reasons of the condition SidecarSetUpgradable, which OpenKruise uses too.
const (
	reasonUpgradable    = "AllSidecarsetUpgradable"
	reasonNotUpgradable = "UpdateImmutableField"
)

// Condition returns the condition SidecarSetUpgradable to write to a pod, or nil. Its message is a JSON object that
// maps the names of SidecarSets to whether they can update the pod in place. Like in OpenKruise it becomes true after
// an update, and false only while the strategy would update the pod. In addition, Refit corrects a value that is no
// longer true even without an update.
func Condition(pod *corev1.Pod, sidecarSet string, v *Verdict, strategy *rollout.Strategy) *corev1.PodCondition {
	upgradable := v.State != rollout.NotUpgradable
	said := map[string]bool{}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; string(c.Type) == v1beta1.ConditionSidecarSetUpgradable {
			var read map[string]bool
			if foreign.JSON(c.Message, &read) == nil {
				maps.Copy(said, read)
			}
		}
	}
	switch was, ok := said[sidecarSet]; {
	case ok && was == upgradable:
		return nil
	case upgradable && !ok && (v.State != rollout.Updated || !v.InPlace): // injected at creation: nothing to report
		return nil
	case !upgradable && !strategy.Selects(pod.Labels):
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
		panic(err) // cannot happen: a map of booleans can always be encoded
	}
	condition.Message = string(text)
	return condition
}
