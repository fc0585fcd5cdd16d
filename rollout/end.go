package rollout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/recheck"
)

// Reasons in status.failures that do not come from a ContainerRecreateRequest.
const (
	// ReasonRefused means that the API server or admission has refused the request.
	ReasonRefused = "Refused"
	// ReasonNoContainer means that the pod lacks a container of the rollout.
	ReasonNoContainer = "ContainerNotFound"
)

// maxUnreadable limits the message about an unreadable selector, in bytes.
const maxUnreadable = 512

// end ends the rollout if nothing more may or has to be done, and no restart is in progress.
func (v *view) end(observed *Observation) bool {
	status, spec, over := &v.decision.Status, &v.rollout.Spec, v.stopReason()
	switch {
	case observed.Unreadable != "":
		v.complete(v1alpha1.ReasonTargetNotReadable, foreign.Shorten(observed.Unreadable, maxUnreadable))
	case observed.TargetGone && spec.TargetRef != nil:
		v.complete(v1alpha1.ReasonTargetNotFound, fmt.Sprintf("%s %s does not exist", spec.TargetRef.Kind, spec.TargetRef.Name))
	case status.RestartingPods > 0:
		return false
	case over != "":
		v.complete(over, v.message()+"; "+v.stopCause())
	case observed.Terminating:
		v.complete(v1alpha1.ReasonNamespaceTerminating, v.message()+"; the namespace is being deleted")
	case status.FailedPods > 0 && (v.stopped() || v.settled()):
		v.complete(v1alpha1.ReasonPodsFailed, fmt.Sprintf("%s; first: pod %s: %s: %s", v.message(), status.Failures[0].Pod, status.Failures[0].Reason, status.Failures[0].Message))
	case v.unreported > 0:
		return false
	case len(v.pods) == 0 && v.notStarted > 0:
		v.complete(v1alpha1.ReasonNotStarted, fmt.Sprintf("no pod has been restarted: %d of %d pods are older than the rollout and have not started their containers", v.notStarted, len(v.all)))
	case len(v.pods) == 0:
		v.complete("", v.noPodsReason())
	case v.settled() && v.notStarted > 0:
		v.complete("", fmt.Sprintf("%s; %d of %d have not started their containers", v.message(), v.notStarted, len(v.all)))
	case v.settled():
		v.complete("", v.message())
	default:
		return false
	}
	return true
}

// noPodsReason returns why there is no pod to restart.
func (v *view) noPodsReason() string {
	message := "there is no pod to be restarted"
	if len(v.all) > 0 {
		message += fmt.Sprintf(": none of %d pods is older than the rollout", len(v.all))
	}
	return message
}

// stopReason returns why no further pod may be restarted, or "". If it returns a reason, the rollout ends as soon as no
// restart is in progress.
func (v *view) stopReason() string {
	if meta.IsStatusConditionTrue(v.rollout.Status.Conditions, v1alpha1.ConditionReplaced) {
		return v1alpha1.ReasonReplaced
	}
	seconds, started := v.rollout.Spec.ActiveDeadlineSeconds, v.decision.Status.StartTime
	if seconds == nil || started == nil {
		return ""
	}
	deadline := started.Add(time.Duration(*seconds) * time.Second)
	if !v.now.Before(deadline) {
		return v1alpha1.ReasonDeadlineExceeded
	}
	v.again(deadline)
	return ""
}

// stopCause returns what has ended a rollout that is over.
func (v *view) stopCause() string {
	if c := meta.FindStatusCondition(v.rollout.Status.Conditions, v1alpha1.ConditionReplaced); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return fmt.Sprintf("activeDeadlineSeconds %d have passed", *v.rollout.Spec.ActiveDeadlineSeconds)
}

// message returns a summary of the restarts.
func (v *view) message() string {
	status, replaced := &v.decision.Status, 0
	for _, p := range v.pods {
		if p.replaced {
			replaced++
		}
	}
	text := fmt.Sprintf("%d of %d pods have been restarted", status.RestartedPods, status.MatchedPods)
	if status.FailedPods > 0 {
		text += fmt.Sprintf(", %d failed", status.FailedPods)
	}
	if replaced > 0 {
		text += fmt.Sprintf(", of which %d were restarted after all", replaced)
	}
	return text
}

// Refuse records requests that the API server or admission has refused, so that they are not created again.
func (d *Decision) Refuse(refusals []v1alpha1.PodFailure) {
	d.Status.Failures = listed(refusals, d.Status.Failures)
}

// listed returns the failures for the status: the first ones, each bounded, and one of each name of a pod, which is their key.
func listed(lists ...[]v1alpha1.PodFailure) []v1alpha1.PodFailure {
	var all []v1alpha1.PodFailure
	for _, failure := range slices.Concat(lists...) {
		if len(all) == MaxFailures {
			break
		}
		if !slices.ContainsFunc(all, func(f v1alpha1.PodFailure) bool { return f.Pod == failure.Pod }) {
			all = append(all, BoundedFailure(failure))
		}
	}
	return all
}

// settled reports whether no pod has to be restarted any more, and all restarted pods are available again.
func (v *view) settled() bool {
	for _, p := range v.pods {
		if p.stage == waiting || p.stage == restarted && !p.budget.Available {
			return false
		}
	}
	return true
}

// complete ends the rollout; an empty reason means success.
func (v *view) complete(reason, message string) {
	status, succeeded := &v.decision.Status, reason == ""
	status.CompletionTime = &metav1.Time{Time: v.now}
	status.UnavailablePods = 0 // it is not updated any more
	if succeeded {
		reason = v1alpha1.ReasonRestarted
		if status.MatchedPods == 0 {
			reason = v1alpha1.ReasonNoPods
		}
	}
	v.outcome(succeeded, reason, message)
	v.decision.Again = recheck.At{}
	v.expire(v.now)
}

// outcome sets the conditions of a rollout that has ended.
func (v *view) outcome(success bool, reason, message string) {
	succeeded, failed, progressing := metav1.ConditionTrue, metav1.ConditionFalse, v1alpha1.ReasonCompleted
	if !success {
		succeeded, failed, progressing = metav1.ConditionFalse, metav1.ConditionTrue, reason
	}
	v.condition(v1alpha1.ConditionSucceeded, succeeded, reason, message)
	v.condition(v1alpha1.ConditionFailed, failed, reason, message)
	v.condition(v1alpha1.ConditionFinished, metav1.ConditionTrue, reason, message)
	v.condition(v1alpha1.ConditionProgressing, succeeded, progressing, message)
}

// progress sets the conditions of a rollout that continues.
func (v *view) progress(reason, message string) {
	const unknown = "the rollout has not ended"
	v.condition(v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonNotFinished, unknown)
	v.condition(v1alpha1.ConditionFailed, metav1.ConditionUnknown, v1alpha1.ReasonNotFinished, unknown)
	v.condition(v1alpha1.ConditionFinished, metav1.ConditionFalse, v1alpha1.ReasonNotFinished, unknown)
	limit := defaultProgressDeadline
	if seconds := v.rollout.Spec.ProgressDeadlineSeconds; seconds != nil {
		limit = time.Duration(*seconds) * time.Second
	}
	if reason == v1alpha1.ReasonPaused || reason == v1alpha1.ReasonPartition {
		// Somebody has to act: the progress deadline starts again after that.
		v.decision.Status.LastProgressTime = nil
		v.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, reason, message)
		return
	}
	deadline := v.decision.Status.LastProgressTime.Add(limit)
	if v.now.Before(deadline) {
		v.again(deadline)
		v.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, reason, message)
		return
	}
	v.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonNoProgress, "no pod has been restarted for "+limit.String()+": "+message)
}

func (v *view) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&v.decision.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: v.rollout.Generation, LastTransitionTime: metav1.NewTime(v.now),
	})
}

// expire deletes a completed rollout when its TTL has expired.
func (v *view) expire(ended time.Time) {
	seconds := v.rollout.Spec.TTLSecondsAfterFinished
	if seconds == nil {
		return
	}
	at := ended.Add(time.Duration(*seconds) * time.Second)
	if v.decision.Delete = !v.now.Before(at) && v.rollout.Status.CompletionTime != nil; !v.decision.Delete {
		v.again(at)
	}
}
