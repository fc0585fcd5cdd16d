package crr

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
)

// Reasons of the conditions Accepted, Succeeded and Failed.
const (
	ReasonAccepted = "Accepted"
	// ReasonCarriedOutBySidecar says that a refit-sidecar in the pod carries out the request, so no daemon of the node
	// is needed. The condition Accepted has this reason also while the request waits for another request of the pod.
	ReasonCarriedOutBySidecar         = "CarriedOutBySidecar"
	ReasonSucceeded                   = "Succeeded"
	ReasonPodGone                     = "PodGone"
	ReasonDeadlineExceeded            = "DeadlineExceeded"
	ReasonStopFailed                  = "StopFailed"
	ReasonRestartPolicyForbidsRestart = "RestartPolicyForbidsRestart"
	ReasonRestartNotReported          = "RestartNotReported"
	// ReasonEndedAfterRestart says that the container was restarted, and that its new instance has ended and is not
	// started again.
	ReasonEndedAfterRestart   = "EndedAfterRestart"
	ReasonDrainNotAcquired    = "DrainNotAcquired"
	ReasonInvalidRequest      = "InvalidRequest"
	ReasonContainerFailed     = "ContainerFailed"
	ReasonDaemonNotResponding = "DaemonNotResponding"
	// ReasonNotPossibleHere says that the container cannot or must not be stopped without access to its container runtime.
	ReasonNotPossibleHere = "NotPossibleHere"
)

// Outcome says how a request ends. For success Reason and Message are empty. Otherwise Reason is one of the Reason
// constants and Message is not empty.
type Outcome struct {
	Reason, Message string
}

// Completed reports whether the request has ended. Its status must not change any more.
func Completed(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Status.Phase == v1beta1.ContainerRecreateRequestCompleted || request.Status.CompletionTime != nil
}

// Complete ends a request: it sets phase Completed like OpenKruise, the conditions Succeeded, Failed and Complete for
// `kubectl wait`, and marks every unfinished container as Failed with a message, so that no container state of an ended
// request shows work in progress.
func Complete(status *v1beta1.ContainerRecreateRequestStatus, outcome Outcome, generation int64, now time.Time) {
	at, said := metav1.NewTime(now), podrules.Short(outcome.Message)
	status.Phase, status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, &at
	// OpenKruise clients treat any message of a completed request as a failure.
	status.Message = said
	for i := range status.ContainerRecreateStates {
		state := &status.ContainerRecreateStates[i]
		if !finished(state.Phase) {
			state.Phase = v1beta1.ContainerRecreateRequestFailed
			state.Message = joinMessages(said, state.Message)
		}
	}
	succeeded, failed, reason := metav1.ConditionTrue, metav1.ConditionFalse, ReasonSucceeded
	if outcome.Reason != "" {
		succeeded, failed, reason = metav1.ConditionFalse, metav1.ConditionTrue, outcome.Reason
	}
	condition := metav1.Condition{
		Type: v1beta1.ConditionSucceeded, Status: succeeded, Reason: reason, Message: said,
		ObservedGeneration: generation, LastTransitionTime: at,
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	condition.Type, condition.Status = v1beta1.ConditionFailed, failed
	meta.SetStatusCondition(&status.Conditions, condition)
	condition.Status = metav1.ConditionTrue
	for _, condition.Type = range []string{v1beta1.ConditionFinished, v1beta1.ConditionComplete} {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

func finished(phase v1beta1.ContainerRecreateRequestPhase) bool {
	return phase == v1beta1.ContainerRecreateRequestSucceeded || phase == v1beta1.ContainerRecreateRequestFailed
}

func joinMessages(why, detail string) string {
	if detail != "" {
		why += ": " + detail
	}
	return podrules.Short(why)
}

// Result returns "succeeded" or "failed", and the reason, for an ended request.
func Result(status v1beta1.ContainerRecreateRequestStatus) (result, reason string) {
	if succeeded := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSucceeded); succeeded != nil {
		reason = succeeded.Reason
		if succeeded.Status == metav1.ConditionTrue {
			return "succeeded", reason
		}
	}
	return "failed", reason
}

// OutcomeOf returns the outcome of an ended request. If the request has no conditions (kruise-daemon, or the CRDs of
// OpenKruise up to 1.9), a message means failure, and so does any container that is not Succeeded.
func OutcomeOf(request *v1beta1.ContainerRecreateRequest) Outcome {
	if succeeded := meta.FindStatusCondition(request.Status.Conditions, v1beta1.ConditionSucceeded); succeeded != nil {
		if succeeded.Status == metav1.ConditionTrue {
			return Outcome{}
		}
		return Outcome{Reason: succeeded.Reason, Message: succeeded.Message}
	}
	if request.Status.Message != "" {
		return Outcome{Reason: ReasonContainerFailed, Message: request.Status.Message}
	}
	for _, container := range request.Spec.Containers {
		state, known := RecreateStateOf(request, container.Name)
		if known && state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
			continue
		}
		message := fmt.Sprintf("container %s was not recreated", container.Name)
		if state.Message != "" {
			message += ": " + state.Message
		}
		return Outcome{Reason: ReasonContainerFailed, Message: message}
	}
	return Outcome{}
}
