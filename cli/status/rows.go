package status

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/jobplan"
)

// Line is the row of one object.
type Line struct {
	Object client.Object
	Name   string // KIND/NAME
	Target string
	State  string
	Done   string // progress, such as 2/5
	By     string
	Detail string // reason and message
	Ended  time.Time
}

// Describe returns the row of an object: a ContainerRecreateRequest, a RestartRollout, an InPlaceUpdatePolicy or an ImagePullJob.
func Describe(object client.Object) Line {
	line := Line{Object: object, By: object.GetAnnotations()[v1beta1.AnnotationRequestedBy]}
	switch o := object.(type) {
	case *v1beta1.ContainerRecreateRequest:
		line.Name, line.Target = "crr/"+o.Name, "pod/"+o.Spec.PodName
		line.request(o)
	case *v1alpha1.RestartRollout:
		line.Name = "restartrollout/" + o.Name
		if trigger := o.Annotations[v1alpha1.AnnotationTrigger]; trigger != "" {
			line.By = trigger
		}
		line.rollout(o)
	case *v1alpha1.InPlaceUpdatePolicy:
		line.Name = "inplaceupdatepolicy/" + o.Name
		line.update(o)
	case *v1beta1.ImagePullJob:
		line.Name, line.Target = "imagepulljob/"+o.Name, o.Spec.Image
		line.pull(o)
	}
	return line
}

// request fills in the state of a request: the state of its containers, and its result at the end.
func (l *Line) request(request *v1beta1.ContainerRecreateRequest) {
	done := 0
	for _, state := range request.Status.ContainerRecreateStates {
		if state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
			done++
		}
	}
	l.Done = fmt.Sprintf("%d/%d", done, len(request.Spec.Containers))
	l.Detail = cmp.Or(request.Status.Message, crr.DrainMessage(request))
	switch {
	case crr.Completed(request):
		l.State, l.Ended = v1beta1.ConditionSucceeded, ended(request.Status.CompletionTime)
		if outcome := crr.OutcomeOf(request); outcome.Reason != "" {
			l.State, l.Detail = v1beta1.ConditionFailed, joined(outcome.Reason, outcome.Message)
		}
	case request.Status.Phase == "":
		l.State = "Waiting"
	default:
		l.State = string(request.Status.Phase)
	}
}

func (l *Line) rollout(object *v1alpha1.RestartRollout) {
	status := object.Status
	l.Target = workload(object.Spec.TargetRef)
	l.Done = fmt.Sprintf("%d/%d", status.RestartedPods, status.MatchedPods)
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	if condition != nil {
		l.State, l.Detail = condition.Reason, condition.Message
	}
	if l.State == v1alpha1.ReasonBudget && status.RestartingPods > 0 { // it restarts as many as it may, so it is not blocked
		l.State = v1alpha1.ReasonRestarting
	}
	for _, end := range []string{v1alpha1.ConditionSucceeded, v1alpha1.ConditionFailed} {
		if condition := meta.FindStatusCondition(status.Conditions, end); condition != nil && condition.Status == metav1.ConditionTrue {
			l.State, l.Detail = end, joined(condition.Reason, condition.Message)
		}
	}
	if status.CompletionTime != nil {
		l.Ended = status.CompletionTime.Time
	} else if l.State == "" {
		l.State = "Waiting"
	}
}

// update fills in the state of a policy: how the last update of its workload stands.
func (l *Line) update(policy *v1alpha1.InPlaceUpdatePolicy) {
	status := policy.Status
	l.Target = workload(&policy.Spec.TargetRef)
	l.Done = fmt.Sprintf("%d/%d", status.UpdatedReadyPods, status.MatchedPods)
	l.State = "Waiting"
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionAccepted} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c != nil && (kind == v1alpha1.ConditionProgressing || c.Status == metav1.ConditionFalse) {
			l.State, l.Detail = c.Reason, c.Message
		}
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		l.State, l.Detail, l.Ended = v1beta1.ConditionSucceeded, ready.Message, ready.LastTransitionTime.Time
	}
}

func (l *Line) pull(job *v1beta1.ImagePullJob) {
	status := job.Status
	l.Done, l.Detail = fmt.Sprintf("%d/%d", status.Succeeded, status.Desired), status.Message
	switch {
	case status.CompletionTime == nil && status.StartTime == nil:
		l.State = "Waiting"
	case status.CompletionTime == nil:
		l.State = "Pulling"
	case invalid(job):
		l.State = jobplan.ReasonInvalidImage
	case status.Desired == 0: // `kubectl refit pull` fails then
		l.State = "NoNodes"
	case status.Failed > 0 || status.Succeeded < status.Desired:
		l.State = "Failed"
	default:
		l.State = "Succeeded"
	}
	l.Ended = ended(status.CompletionTime)
}

// invalid reports whether a job has ended because its image is no reference of an image. OpenKruise's CRD drops the condition.
func invalid(job *v1beta1.ImagePullJob) bool {
	_, err := image.Parse(job.Spec.Image)
	failed := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionPullFailed)
	return err != nil || failed != nil && failed.Reason == jobplan.ReasonInvalidImage
}

func ended(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

func joined(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

// cells returns the cells of a row of the table.
func (l *Line) cells(now time.Time, namespaces bool) []any {
	cells := []any{l.Name, l.Target, l.State, l.Done, l.By, duration.HumanDuration(now.Sub(l.Object.GetCreationTimestamp().Time)), l.Detail}
	if namespaces {
		return append([]any{l.Object.GetNamespace()}, cells...)
	}
	return cells
}
