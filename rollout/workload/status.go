package workload

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/budget"
)

// maxMessage limits the message of a condition, in bytes.
const maxMessage = 1024

// count counts the pods, and sets the conditions Ready and Stalled.
func (v *view) count() {
	status := &v.decision.Status
	before := status.UpdatedReadyPods
	status.RolloutPods = v1alpha1.RolloutPods{LastProgressTime: status.LastProgressTime}
	status.UpdatedPods, status.UpdatedReadyPods, status.RecreatedPods, status.UpdatingPods = 0, 0, 0, 0
	for _, p := range v.pods {
		status.MatchedPods++
		if p.stage == updating {
			status.UpdatingPods++
		}
		if p.stage == updated {
			status.UpdatedPods++
			if p.budget.Available {
				status.UpdatedReadyPods++
			}
			if p.recreated {
				status.RecreatedPods++
			}
		}
		if p.failure != nil {
			status.FailedPods++
			if len(status.Failures) < rollout.MaxFailures {
				status.Failures = append(status.Failures, rollout.BoundedFailure(*p.failure))
			}
		}
	}
	unavailable := budget.New(0, v.budgets(), v.size()-len(v.pods), 0, nil).Unavailable()
	status.UnavailablePods = int32(max(0, min(unavailable, math.MaxInt32)))
	if status.UpdatedReadyPods > before || status.LastProgressTime == nil {
		status.LastProgressTime = &metav1.Time{Time: v.now}
	}
	v.ready()
}

// ready sets the conditions Ready and Stalled from the others.
func (v *view) ready() {
	status := &v.decision.Status
	progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	completed := progressing != nil && progressing.Reason == v1alpha1.ReasonCompleted
	all := int(status.MatchedPods) >= v.size() && status.UnavailablePods == 0
	switch {
	case completed && all:
		v.set(v1alpha1.ConditionReady, true, v1alpha1.ReasonCompleted, "all pods have the template and are available"+v.excludedPods())
	case completed:
		v.set(v1alpha1.ConditionReady, false, v1alpha1.ReasonBudget, "all pods have the template, and not all are available")
	case progressing != nil:
		v.set(v1alpha1.ConditionReady, false, progressing.Reason, progressing.Message)
	}
	if progressing != nil && progressing.Status == metav1.ConditionFalse {
		v.set(v1alpha1.ConditionStalled, true, progressing.Reason, progressing.Message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
	}
}

// failures returns how many pods have failed.
func (v *view) failures() (n int) {
	for _, p := range v.pods {
		if p.failure != nil {
			n++
		}
	}
	return n
}

// accept sets the condition Accepted to True, with a message about fields of manifests that differ while the workload is held.
func (v *view) accept() {
	message := ""
	if named := v.workload.named(); named != "" && v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner {
		message = named + ", which differs while the workload is held"
	}
	v.set(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonAccepted, message)
}

// acceptLater sets Accepted to Unknown until the workload has the label by which the API server holds it.
func (v *view) acceptLater() {
	v.condition(v1alpha1.ConditionAccepted, metav1.ConditionUnknown, v1alpha1.ReasonNotHeld,
		"the workload is held when it has the label "+v1alpha1.LabelHoldUID+", which refit-manager sets")
}

// unheldInterval is the time between searches for the object that holds workloads.
const unheldInterval = time.Minute

const messageOwnerHolds = "with holdPolicy ByOwner a Deployment has to be paused, and another workload to have the strategy OnDelete"

// warn sets the condition Stalled if nothing would hold the workload when its template changes.
func (v *view) warn(unheld string) {
	if v.policy.Spec.HoldPolicy == v1alpha1.HoldByOwner {
		unheld = ""
		if !v.workload.Held && !v.workload.OwnerHolds {
			unheld = messageOwnerHolds
		}
	}
	if unheld == "" {
		return
	}
	v.again(v.now.Add(unheldInterval))
	if !meta.IsStatusConditionTrue(v.decision.Status.Conditions, v1alpha1.ConditionStalled) {
		v.set(v1alpha1.ConditionStalled, true, v1alpha1.ReasonNotHeld, unheld)
	}
}

// refuse sets Accepted to False, with the reason.
func (v *view) refuse(reason, message string) {
	v.set(v1alpha1.ConditionAccepted, false, reason, message)
	v.set(v1alpha1.ConditionReady, false, reason, message)
	v.set(v1alpha1.ConditionStalled, true, reason, message)
}

func (v *view) set(kind string, is bool, reason, message string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	v.condition(kind, status, reason, message)
}

// pausedFor sets Progressing to Unknown, as a Deployment does while it is paused.
func (v *view) pausedFor(message string) {
	v.condition(v1alpha1.ConditionProgressing, metav1.ConditionUnknown, v1alpha1.ReasonPaused, message)
}

func (v *view) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&v.decision.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: foreign.Shorten(message, maxMessage),
		ObservedGeneration: v.policy.Generation, LastTransitionTime: metav1.NewTime(v.now),
	})
}
