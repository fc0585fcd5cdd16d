package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// verdict says how the update to a template stands.
type verdict int

const (
	verdictWaiting     verdict = iota
	verdictDone                // every pod has the template and is available
	verdictFailed              // somebody has to act
	verdictPausing             // the pause of a step lasts until it is promoted
	verdictPartitioned         // the partition leaves the other pods as they are
)

// judge returns how the update to the template of a generation of the workload stands, and why.
func judge(policy *v1alpha1.InPlaceUpdatePolicy, generation int64) (verdict, string) {
	status := &policy.Status
	accepted, progressing := condition(policy, v1alpha1.ConditionAccepted), condition(policy, v1alpha1.ConditionProgressing)
	ready, stalled := condition(policy, v1alpha1.ConditionReady), condition(policy, v1alpha1.ConditionStalled)
	switch {
	case status.ObservedGeneration < policy.Generation:
		return verdictWaiting, "waiting for refit-manager to see InPlaceUpdatePolicy " + policy.Name
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		return verdictFailed, text(accepted)
	case status.ObservedTargetGeneration < generation:
		return verdictWaiting, "waiting for refit-manager to see the template"
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return verdictDone, ready.Message
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return verdictFailed, text(stalled)
	case progressing == nil:
		return verdictWaiting, "waiting for refit-manager to see the template"
	case progressing.Reason == v1alpha1.ReasonStep && pausing(policy):
		return verdictPausing, text(progressing)
	case progressing.Reason == v1alpha1.ReasonPartition && status.UpdatingPods == 0 && status.UpdatedReadyPods == status.UpdatedPods:
		return verdictPartitioned, progressing.Message
	}
	return verdictWaiting, text(progressing)
}

// seen reports whether the status belongs to the template of a generation of the workload.
func seen(policy *v1alpha1.InPlaceUpdatePolicy, generation int64) bool {
	return policy.Status.ObservedGeneration >= policy.Generation && policy.Status.ObservedTargetGeneration >= generation
}

// pausing reports whether the pause of the present step lasts until it is promoted.
func pausing(policy *v1alpha1.InPlaceUpdatePolicy) bool {
	step := policy.Status.Step
	if step == nil || policy.Status.StepTime == nil || int(*step) >= len(policy.Spec.Steps) {
		return false
	}
	pause := policy.Spec.Steps[*step].Pause
	return pause != nil && pause.Seconds == nil
}

func condition(policy *v1alpha1.InPlaceUpdatePolicy, kind string) *metav1.Condition {
	return meta.FindStatusCondition(policy.Status.Conditions, kind)
}

func text(c *metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// advice says what to do about an update that does not continue by itself; empty if nothing has to be done.
func advice(policy *v1alpha1.InPlaceUpdatePolicy, of Target) string {
	reason := ""
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionAccepted} {
		if c := condition(policy, kind); c != nil && c.Status != metav1.ConditionTrue {
			reason = c.Reason
		}
	}
	with := " --namespace=" + policy.Namespace
	switch {
	case reason == v1alpha1.ReasonPodsFailed:
		why := "POD"
		if failures := policy.Status.Failures; len(failures) > 0 {
			why = failures[0].Pod
		}
		return fmt.Sprintf("why:     kubectl refit why %s%s\n  go back: kubectl refit rollout undo %s%s\n  or change the template again: pods that have the new one are updated as well", why, with, of, with)
	case reason == v1alpha1.ReasonImagePullFailed:
		return fmt.Sprintf("go back: kubectl refit rollout undo %s%s\n  or set another image: kubectl refit set image %s%s CONTAINER=IMAGE", of, with, of, with)
	case reason == v1alpha1.ReasonNotInPlace:
		return fmt.Sprintf("go back: kubectl refit rollout undo %s%s\n  or let its pods be replaced: kubectl patch inplaceupdatepolicy %s%s --type=merge --patch='{\"spec\":{\"podUpdatePolicy\":\"InPlaceIfPossible\"}}'",
			of, with, policy.Name, with)
	case reason == v1alpha1.ReasonPaused && policy.Spec.Paused:
		return "continue: kubectl refit rollout resume " + of.String() + with
	case reason == v1alpha1.ReasonPaused:
		return "its owner has paused it, and not Refit: kubectl rollout resume " + of.String() + with
	case reason == v1alpha1.ReasonConflicted:
		return "delete one of the two: kubectl delete inplaceupdatepolicy " + policy.Name + with
	case pausing(policy):
		return fmt.Sprintf("continue: kubectl refit rollout promote %s%s\n  go back:  kubectl refit rollout undo %s%s", of, with, of, with)
	}
	return ""
}
