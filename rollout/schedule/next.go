package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/recheck"
)

// Defaults of the history limits, the same as for CronJob.
const (
	defaultSuccessful = 3
	defaultFailed     = 1
)

// maxMessage limits the messages of others in a condition, in bytes.
const maxMessage = 1024

// Decision is the result of Next.
type Decision struct {
	// Create is the rollout to create, or nil. It is created before the status is written: its name is derived from the
	// scheduled time, so that it is created only once.
	Create *v1alpha1.RestartRollout
	// Replace are unfinished rollouts that the rollout of the last scheduled time replaces. When Create has been created,
	// the caller sets their condition Replaced, so that they start no further restarts and end when the restarts in
	// progress have ended. If Create is refused, they continue.
	Replace []*v1alpha1.RestartRollout
	// Replaced is the condition to set.
	Replaced metav1.Condition
	// Delete are rollouts beyond the history limits, and replaced rollouts that have ended.
	Delete []*v1alpha1.RestartRollout
	// Status is the new status, to write if it differs from the old one.
	Status v1alpha1.RestartScheduleStatus
	// Waiting is the name of the rollout that Create has to wait for because of concurrencyPolicy Forbid; empty if
	// nothing waits.
	Waiting string
	// Again is when to call Next again.
	Again recheck.At
}

// Next returns what to do about a schedule. rollouts are the rollouts that it has created.
func Next(schedule *v1alpha1.RestartSchedule, times Times, rollouts []*v1alpha1.RestartRollout, now time.Time) Decision {
	d := newDecision(schedule)
	active := d.observe(schedule, rollouts)
	if schedule.Spec.Suspend {
		d.ready(now, metav1.ConditionTrue, v1alpha1.ReasonSuspended, "spec.suspend is set: no RestartRollout is created")
		return d
	}
	d.ready(now, metav1.ConditionTrue, v1alpha1.ReasonScheduled, "RestartRollouts are created at the times of the schedule")
	next := times.After(now)
	d.Again = recheck.On(next)
	if !next.IsZero() {
		d.Status.NextScheduleTime = &metav1.Time{Time: next}
	}
	due := times.Last(begin(schedule, now), now)
	if due.IsZero() {
		return d
	}
	created := newRollout(schedule, due)
	switch exists := slices.ContainsFunc(rollouts, func(r *v1alpha1.RestartRollout) bool { return r.Name == created.Name }); {
	case exists: // the status was not written
	case len(active) > 0 && schedule.Spec.ConcurrencyPolicy != v1alpha1.ScheduleReplace:
		d.Waiting = active[0].Name
		return d
	default:
		if d.unfinished() {
			created.Annotations[v1alpha1.AnnotationOldestFirst] = "true"
		}
		d.Create = created
		d.Status.Active = append(d.Status.Active, created.Name)
	}
	d.replace(schedule, active, created.Name, now)
	d.Status.LastScheduleTime = &metav1.Time{Time: due}
	return d
}

// Invalid returns the decision for a schedule that Read does not accept.
func Invalid(schedule *v1alpha1.RestartSchedule, err error, now time.Time) Decision {
	d := newDecision(schedule)
	d.ready(now, metav1.ConditionFalse, v1alpha1.ReasonInvalidSchedule, foreign.Shorten(err.Error(), maxMessage))
	return d
}

func newDecision(schedule *v1alpha1.RestartSchedule) Decision {
	d := Decision{Status: *schedule.Status.DeepCopy()}
	d.Status.ObservedGeneration, d.Status.NextScheduleTime = schedule.Generation, nil
	return d
}

func (d *Decision) ready(now time.Time, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: d.Status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
}

// unfinished reports whether the last rollout has not succeeded, so that it may not have reached all pods.
func (d *Decision) unfinished() bool {
	last, succeeded := d.Status.LastScheduleTime, d.Status.LastSuccessfulTime
	return last != nil && (succeeded == nil || succeeded.Before(last))
}

// Refuse undoes the recording of Create in the status after its creation was refused: its scheduled time stays due.
func (d *Decision) Refuse(schedule *v1alpha1.RestartSchedule, err error, now time.Time) {
	d.Status.Conditions = schedule.DeepCopy().Status.Conditions // keeps the time of an earlier refusal
	d.ready(now, metav1.ConditionFalse, v1alpha1.ReasonRolloutRefused, foreign.Shorten(err.Error(), maxMessage))
	d.Status.LastScheduleTime = schedule.Status.LastScheduleTime.DeepCopy()
	d.Status.Active = slices.DeleteFunc(d.Status.Active, func(name string) bool { return name == d.Create.Name })
	if len(d.Status.Active) == 0 {
		d.Status.Active = nil
	}
}

// replace ends the unfinished rollouts, if that is the policy.
func (d *Decision) replace(schedule *v1alpha1.RestartSchedule, active []*v1alpha1.RestartRollout, by string, now time.Time) {
	if schedule.Spec.ConcurrencyPolicy != v1alpha1.ScheduleReplace {
		return
	}
	d.Replaced = metav1.Condition{
		Type: v1alpha1.ConditionReplaced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReplaced,
		Message: "RestartRollout " + by + " has replaced this one", LastTransitionTime: metav1.NewTime(now),
	}
	for _, r := range active {
		if r.Name != by && !replaced(r) {
			d.Replace = append(d.Replace, r)
		}
	}
}

func replaced(r *v1alpha1.RestartRollout) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReplaced)
}

// observe sets the status of the existing rollouts, selects those beyond the history limits, and returns the unfinished
// ones.
func (d *Decision) observe(schedule *v1alpha1.RestartSchedule, rollouts []*v1alpha1.RestartRollout) (active []*v1alpha1.RestartRollout) {
	rollouts = slices.SortedFunc(slices.Values(rollouts), func(a, b *v1alpha1.RestartRollout) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var succeeded, failed, left []*v1alpha1.RestartRollout
	d.Status.Active = nil
	for _, r := range rollouts {
		switch ended := r.Status.CompletionTime; {
		case r.DeletionTimestamp != nil:
		case ended == nil:
			active = append(active, r)
			d.Status.Active = append(d.Status.Active, r.Name)
		case replaced(r):
			left = append(left, r)
		case meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionSucceeded):
			succeeded = append(succeeded, r)
			if last := d.Status.LastSuccessfulTime; last == nil || last.Before(ended) {
				d.Status.LastSuccessfulTime = ended.DeepCopy()
			}
		default:
			failed = append(failed, r)
		}
	}
	d.Delete = slices.Concat(left, beyond(succeeded, schedule.Spec.SuccessfulRolloutsHistoryLimit, defaultSuccessful), beyond(failed, schedule.Spec.FailedRolloutsHistoryLimit, defaultFailed))
	return active
}

// beyond returns the oldest of the rollouts: those beyond the limit.
func beyond(rollouts []*v1alpha1.RestartRollout, limit *int32, fallback int) []*v1alpha1.RestartRollout {
	if limit != nil {
		fallback = int(*limit)
	}
	return rollouts[:max(0, len(rollouts)-fallback)]
}

// begin returns the time after which scheduled times count.
func begin(schedule *v1alpha1.RestartSchedule, now time.Time) time.Time {
	from := schedule.CreationTimestamp.Time
	if last := schedule.Status.LastScheduleTime; last != nil {
		from = last.Time
	}
	if seconds := schedule.Spec.StartingDeadlineSeconds; seconds != nil {
		if deadline := now.Add(-time.Duration(*seconds) * time.Second); deadline.After(from) {
			from = deadline
		}
	}
	return from
}

func newRollout(schedule *v1alpha1.RestartSchedule, at time.Time) *v1alpha1.RestartRollout {
	template := schedule.Spec.RolloutTemplate.DeepCopy()
	created := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{
		Namespace: schedule.Namespace, Name: fmt.Sprintf("%s-%d", schedule.Name, at.Unix()/60),
		Labels: template.Metadata.Labels, Annotations: Annotations(template.Metadata.Annotations),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindRestartSchedule, Name: schedule.Name, UID: schedule.UID, Controller: new(true),
		}},
	}}
	created.Annotations[v1alpha1.AnnotationTrigger] = v1alpha1.KindRestartSchedule + "/" + schedule.Name
	reason := cmp.Or(template.Metadata.Annotations[v1beta1.AnnotationReason], schedule.Annotations[v1beta1.AnnotationReason], "RestartSchedule "+schedule.Name)
	for key, value := range map[string]string{v1beta1.AnnotationReason: reason, v1beta1.AnnotationRequestedBy: schedule.Annotations[v1beta1.AnnotationRequestedBy]} {
		if value = requester.Printable(value); value != "" {
			created.Annotations[key] = value
		}
	}
	created.Spec = template.Spec
	return created
}

// Annotations returns the annotations of a template without Refit's own, which whoever creates the rollout sets.
func Annotations(of map[string]string) map[string]string {
	kept := make(map[string]string, len(of))
	for key, value := range of {
		if !strings.HasPrefix(key, v1alpha1.GroupVersion().Group+"/") {
			kept[key] = value
		}
	}
	return kept
}
