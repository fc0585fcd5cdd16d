package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

// Ended reports whether the rollout has ended, by its status or its annotation refit.dev/finished.
func Ended(rollout *v1alpha1.RestartRollout) bool {
	return rollout.Status.CompletionTime != nil || finishedBefore(rollout) != nil
}

// FinishedAnnotation returns the value of the annotation refit.dev/finished for a rollout that has ended with a status.
func FinishedAnnotation(name string, status *v1alpha1.RestartRolloutStatus) string {
	record := v1alpha1.FinishedRecord{Name: name, CompletionTime: *status.CompletionTime}
	if end := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSucceeded); end != nil {
		record.Succeeded, record.Reason = end.Status == metav1.ConditionTrue, end.Reason
	}
	return string(must.JSON(record))
}

// finishedBefore returns the record of the end of a rollout that was restored from a backup without its status, or nil. If
// there is a status, it decides: refit-manager has ended after it wrote the record and before it wrote the status.
func finishedBefore(rollout *v1alpha1.RestartRollout) *v1alpha1.FinishedRecord {
	value := rollout.Annotations[v1alpha1.AnnotationFinished]
	if value == "" || len(rollout.Status.Conditions) > 0 {
		return nil
	}
	var record v1alpha1.FinishedRecord
	if err := foreign.JSON(value, &record); err != nil || record.Name != rollout.Name || record.CompletionTime.IsZero() {
		return nil
	}
	return &record
}

// reasonsOfSuccess and reasonsOfFailure are the reasons in a record. Users can write other ones.
var (
	reasonsOfSuccess = []string{v1alpha1.ReasonRestarted, v1alpha1.ReasonNoPods}
	reasonsOfFailure = []string{
		v1alpha1.ReasonPodsFailed, v1alpha1.ReasonDeadlineExceeded, v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetNotReadable,
		v1alpha1.ReasonNotStarted, v1alpha1.ReasonReplaced, v1alpha1.ReasonNamespaceTerminating,
	}
)

// restore ends the rollout as the record says.
func (v *view) restore(record *v1alpha1.FinishedRecord) {
	v.decision.Status.CompletionTime = record.CompletionTime.DeepCopy()
	v.decision.Status.UnavailablePods = 0
	known := reasonsOfFailure
	if record.Succeeded {
		known = reasonsOfSuccess
	}
	reason := known[0]
	if slices.Contains(known, record.Reason) {
		reason = record.Reason
	}
	at := record.CompletionTime.UTC().Format(time.RFC3339)
	v.outcome(record.Succeeded, reason, "the rollout ended at "+at+", as its annotation "+v1alpha1.AnnotationFinished+" says; nothing is restarted again")
	v.expire(record.CompletionTime.Time)
}
