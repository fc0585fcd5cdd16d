package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// News is the content of an Event about a SidecarSet.
type News struct{ Severity, Reason, Message string }

// Changed returns the conditions of a rollout that have changed from one status to the next.
func Changed(before, after *v1beta1.SidecarSet) []News {
	var list []News
	for _, kind := range []string{v1beta1.ConditionProgressing, v1beta1.ConditionDegraded} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || is.Reason == ReasonAsExpected || kind == v1beta1.ConditionProgressing && is.Reason == ReasonNotUpgradable || // reported by Degraded
			was != nil && was.Reason == is.Reason {
			continue
		}
		severity := corev1.EventTypeNormal
		switch is.Reason {
		case ReasonDeadlineExceeded, ReasonUpdateFailed, ReasonNotUpgradable, ReasonNotInjected, string(rollout.HoldFailures):
			severity = corev1.EventTypeWarning
		}
		list = append(list, News{severity, is.Reason, is.Message})
	}
	return list
}
