package upgrade

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/must"
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
	if c := kubelet.Condition(&pod.Status, v1beta1.ConditionSidecarSetUpgradable); c != nil {
		var read map[string]bool
		if foreign.JSON(c.Message, &read) == nil {
			maps.Copy(said, read)
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
	condition.Message = string(must.JSON(said))
	return condition
}
