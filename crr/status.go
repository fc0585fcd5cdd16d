package crr

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Reasons of the conditions Accepted, Succeeded and Failed.
const (
	ReasonAccepted = "Accepted"
	// ReasonCarriedOutBySidecar: a refit-sidecar in the pod carries out the request, so no daemon of the node is needed. The
	// condition Accepted has it also while the request waits for another one of the pod.
	ReasonCarriedOutBySidecar         = "CarriedOutBySidecar"
	ReasonSucceeded                   = "Succeeded"
	ReasonPodGone                     = "PodGone"
	ReasonDeadlineExceeded            = "DeadlineExceeded"
	ReasonStopFailed                  = "StopFailed"
	ReasonRestartPolicyForbidsRestart = "RestartPolicyForbidsRestart"
	ReasonRestartNotReported          = "RestartNotReported"
	ReasonDrainNotAcquired            = "DrainNotAcquired"
	ReasonInvalidRequest              = "InvalidRequest"
	ReasonContainerFailed             = "ContainerFailed"
	ReasonDaemonNotResponding         = "DaemonNotResponding"
	// ReasonNotPossibleHere: the container cannot or must not be stopped without access to its container runtime.
	ReasonNotPossibleHere = "NotPossibleHere"
)

// Outcome is how a request ends. Reason is empty for success and one of the Reason constants otherwise;
// Message is then never empty.
type Outcome struct {
	Reason, Message string
}

// Completed reports whether the request has ended. Nothing may change its status any more.
func Completed(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Status.Phase == v1beta1.ContainerRecreateRequestCompleted || request.Status.CompletionTime != nil
}

// Complete ends a request: phase Completed as OpenKruise writes it, the conditions Succeeded, Failed and
// Complete for `kubectl wait`, and every container that is not finished marked Failed with why, so that no
// state of an ended request looks as if work went on.
func Complete(status *v1beta1.ContainerRecreateRequestStatus, outcome Outcome, generation int64, now time.Time) {
	at := metav1.NewTime(now)
	status.Phase = v1beta1.ContainerRecreateRequestCompleted
	status.CompletionTime = &at
	// An OpenKruise client reads any message of a completed request as a failure.
	status.Message = outcome.Message
	for i := range status.ContainerRecreateStates {
		state := &status.ContainerRecreateStates[i]
		if !finished(state.Phase) {
			state.Phase = v1beta1.ContainerRecreateRequestFailed
			state.Message = joinMessages(outcome.Message, state.Message)
		}
	}
	succeeded, failed, reason := metav1.ConditionTrue, metav1.ConditionFalse, ReasonSucceeded
	if outcome.Reason != "" {
		succeeded, failed, reason = metav1.ConditionFalse, metav1.ConditionTrue, outcome.Reason
	}
	condition := metav1.Condition{
		Type: v1beta1.ConditionSucceeded, Status: succeeded, Reason: reason, Message: outcome.Message,
		ObservedGeneration: generation, LastTransitionTime: at,
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	condition.Type, condition.Status = v1beta1.ConditionFailed, failed
	meta.SetStatusCondition(&status.Conditions, condition)
	condition.Type, condition.Status = v1beta1.ConditionComplete, metav1.ConditionTrue
	meta.SetStatusCondition(&status.Conditions, condition)
}

func finished(phase v1beta1.ContainerRecreateRequestPhase) bool {
	return phase == v1beta1.ContainerRecreateRequestSucceeded || phase == v1beta1.ContainerRecreateRequestFailed
}

func joinMessages(why, detail string) string {
	if detail == "" {
		return why
	}
	return why + ": " + detail
}

// Result of an ended request, "succeeded" or "failed", and the reason.
func Result(status v1beta1.ContainerRecreateRequestStatus) (result, reason string) {
	if succeeded := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSucceeded); succeeded != nil {
		reason = succeeded.Reason
		if succeeded.Status == metav1.ConditionTrue {
			return "succeeded", reason
		}
	}
	return "failed", reason
}

// OutcomeOf reads the outcome of an ended request, also of one without conditions, as of kruise-daemon or under the CRDs of OpenKruise
// up to 1.9: then a message is a failure, and so is any container that is not Succeeded.
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

// Earlier returns the earlier of two times; the zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
