// Package status computes the status of a SidecarSet from the progress of its rollout.
package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Reasons of the conditions.
const (
	ReasonCompleted        = "Completed"
	ReasonUpdating         = "Updating"
	ReasonNotUpdate        = "NotUpdate"
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"

	ReasonMinimumAvailable   = "MinimumAvailable"
	ReasonMinimumUnavailable = "MinimumUnavailable"

	ReasonUpdateFailed  = "UpdateFailed"
	ReasonNotUpgradable = "NotUpgradable"
	ReasonNotInjected   = "NotInjected"
	ReasonAsExpected    = "AsExpected"
)

// defaultDeadline is the default of progressDeadlineSeconds.
const defaultDeadline = 600 * time.Second

// Observed is the input for the status.
type Observed struct {
	Counts      rollout.Counts
	NotInjected int
	// Revision is the name of the ControllerRevision of the spec.
	Revision       string
	CollisionCount *int32
	// Held says why no more pods are updated now.
	Held rollout.Hold
	// Holders are pods that are unavailable, which holds the others; empty if there are none.
	Holders string
	// Disruption is the PodDisruptionBudget that blocks a pod, as namespace/name; empty if there is none.
	Disruption string
	// Evicted is the number of pods that were evicted and are not replaced yet, and Evictions the number of pods to evict.
	Evicted, Evictions int
	// Leaving is the number of pods that others have evicted or deleted and that are not replaced yet.
	Leaving int
	// Example says why one pod has failed, cannot be updated or was not injected; empty if there is no problem.
	Example string
}

// Next returns the status that the SidecarSet should have, and when to compute it again. If nothing has changed it is equal to the old one.
func Next(set *v1beta1.SidecarSet, o *Observed, now time.Time) (next *v1beta1.SidecarSetStatus, again recheck.At) {
	old := &set.Status
	next = old.DeepCopy()
	c := &o.Counts
	next.ObservedGeneration, next.LatestRevision, next.CollisionCount = set.Generation, o.Revision, o.CollisionCount
	next.MatchedPods, next.UpdatedPods, next.ReadyPods, next.UpdatedReadyPods = number(c.Matched), number(c.Updated), number(c.Ready), number(c.UpdatedReady)
	next.NotInjectedPods, next.NotUpgradablePods = number(o.NotInjected), number(c.NotUpgradable)
	next.UpdatingPods, next.FailedPods = number(c.InFlight), number(c.FailedUpdated)
	switch {
	case o.Held == rollout.HoldFailures:
		next.PausedRevision = o.Revision
	case next.PausedRevision != o.Revision || old.ObservedGeneration != set.Generation:
		next.PausedRevision = ""
	}
	if next.LastProgressTime == nil || old.LatestRevision != o.Revision || next.UpdatedPods > old.UpdatedPods || next.UpdatedReadyPods > old.UpdatedReadyPods {
		next.LastProgressTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	progress, again := progressing(set, o, next.LastProgressTime.Time, now)
	if progress.Reason == ReasonDeadlineExceeded && idle(old) {
		next.LastProgressTime = &metav1.Time{Time: now.Truncate(time.Second)}
		progress, again = progressing(set, o, next.LastProgressTime.Time, now)
	}
	for _, condition := range []metav1.Condition{progress, available(set, c), degraded(o)} {
		condition.ObservedGeneration, condition.LastTransitionTime = set.Generation, metav1.Time{Time: now.Truncate(time.Second)}
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	return next, again
}

// idle reports whether nothing was to be done until now, as before an update is resumed. Its time begins then, as for a Deployment.
func idle(old *v1beta1.SidecarSetStatus) bool {
	was := meta.FindStatusCondition(old.Conditions, v1beta1.ConditionProgressing)
	return was != nil && was.Reason != ReasonUpdating && was.Reason != ReasonDeadlineExceeded
}

func number(pods int) int32 { return int32(pods) } //nolint:gosec // pods of a cluster

// Paused reports whether the update to the newest revision has paused itself because of failures, and the user has not
// changed the spec since.
func Paused(set *v1beta1.SidecarSet, latest string) bool {
	return set.Status.PausedRevision != "" && set.Status.PausedRevision == latest && set.Status.ObservedGeneration == set.Generation
}

func progressing(set *v1beta1.SidecarSet, o *Observed, progress, now time.Time) (metav1.Condition, recheck.At) {
	c := &o.Counts
	condition := metav1.Condition{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionTrue}
	numbers := o.numbers()
	switch {
	case o.Held == rollout.HoldFailures:
		condition.Status, condition.Reason = metav1.ConditionFalse, string(o.Held)
		condition.Message = fmt.Sprintf("%s; %s: change the spec to go on", numbers, wording.Count(c.FailedUpdated, "pod has failed", "pods have failed"))
	case set.Spec.UpdateStrategy.Type == v1beta1.SidecarSetNotUpdate:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, ReasonNotUpdate, numbers+"; running pods are left alone"
	case o.Held == rollout.HoldPaused:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, string(o.Held), numbers
	case o.complete(&set.Status) && c.NotUpgradable > 0:
		condition.Reason, condition.Message = ReasonNotUpgradable, numbers+"; "+wording.Count(c.NotUpgradable, "pod cannot be updated in place and keeps the old version", "pods cannot be updated in place and keep the old version")
	case o.complete(&set.Status):
		condition.Reason, condition.Message = ReasonCompleted, numbers
	case (o.Held == rollout.HoldPartition || o.Held == rollout.HoldSelector) && c.InFlight == 0 && c.Updated == c.UpdatedReady:
		condition.Reason, condition.Message = string(o.Held), numbers+"; the others keep the old version"
	default:
		deadline := progress.Add(deadlineOf(set))
		condition.Reason, condition.Message = ReasonUpdating, numbers
		if o.Held != "" {
			condition.Message += "; held by " + o.held()
		}
		if o.Holders != "" {
			condition.Message += "; unavailable: " + o.Holders
		}
		if now.Before(deadline) {
			return condition, recheck.On(deadline)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonDeadlineExceeded
		condition.Message += fmt.Sprintf("; no progress for %s", deadlineOf(set))
	}
	return condition, recheck.At{}
}

func (o *Observed) numbers() string {
	c := &o.Counts
	numbers := fmt.Sprintf("%d of %d pods are updated, %d of them are ready", c.Updated, c.Matched, c.UpdatedReady)
	var more []string
	add := func(pods int, what string) {
		if pods > 0 {
			more = append(more, fmt.Sprintf("%d %s", pods, what))
		}
	}
	add(o.Evicted, "evicted pods are not replaced")
	add(o.Evictions, "pods are to be evicted")
	add(o.Leaving, "pods are being replaced")
	if len(more) > 0 {
		numbers += "; " + strings.Join(more, ", ")
	}
	return numbers
}

// held returns why no more pods are updated now.
func (o *Observed) held() string {
	if o.Disruption != "" && o.Held != rollout.HoldDisruption {
		return fmt.Sprintf("%s, and by PodDisruptionBudget %s", o.Held, o.Disruption)
	}
	return strings.TrimSpace(string(o.Held) + " " + o.Disruption)
}

// complete reports whether nothing is left to do. Once true, it does not become false because of pods that are not
// ready for other reasons, for example a restart, or that others have evicted: the condition Available reports those.
func (o *Observed) complete(old *v1beta1.SidecarSetStatus) bool {
	c := &o.Counts
	outdated := c.Matched - c.Updated - c.NotUpgradable
	if o.Evicted+o.Evictions > 0 || outdated > 0 {
		return false
	}
	was := meta.FindStatusCondition(old.Conditions, v1beta1.ConditionProgressing)
	if was != nil && old.LatestRevision == o.Revision && (was.Reason == ReasonCompleted || was.Reason == ReasonNotUpgradable && c.NotUpgradable > 0) {
		return true
	}
	return c.UpdatedReady >= c.Updated && o.Leaving == 0
}

func deadlineOf(set *v1beta1.SidecarSet) time.Duration {
	if seconds := set.Spec.UpdateStrategy.ProgressDeadlineSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultDeadline
}

func available(set *v1beta1.SidecarSet, c *rollout.Counts) metav1.Condition {
	allowed := 1
	if limit := set.Spec.UpdateStrategy.MaxUnavailable; limit != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(limit, c.Matched, true); err == nil {
			allowed = n
		}
	}
	condition := metav1.Condition{
		Type: v1beta1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: ReasonMinimumAvailable,
		Message: fmt.Sprintf("%d of %d pods are ready", c.Ready, c.Matched),
	}
	if c.Matched-c.Ready > allowed {
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonMinimumUnavailable
		condition.Message += fmt.Sprintf("; at most %d may be unavailable", allowed)
	}
	return condition
}

func degraded(o *Observed) metav1.Condition {
	c := &o.Counts
	condition := metav1.Condition{Type: v1beta1.ConditionDegraded, Status: metav1.ConditionTrue}
	switch {
	case c.Failed > 0:
		condition.Reason, condition.Message = ReasonUpdateFailed, wording.Count(c.Failed, "pod has failed", "pods have failed")
	case c.NotUpgradable > 0:
		condition.Reason, condition.Message = ReasonNotUpgradable, wording.Count(c.NotUpgradable, "pod", "pods")+" cannot be updated in place"
	case o.NotInjected > 0:
		condition.Reason, condition.Message = ReasonNotInjected, wording.Count(o.NotInjected, "pod was not injected", "pods were not injected")
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, ReasonAsExpected, ""
		return condition
	}
	if o.Example != "" {
		condition.Message += ", as " + o.Example
	}
	return condition
}
