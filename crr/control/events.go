package control

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/lifecycle"
	"github.com/refit-project/refit/crr/requester"
)

// recordEvent sends an Event about the request for a change of the pod or for an outcome that the manager has written.
func recordEvent(recorder events.EventRecorder, request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, decision lifecycle.Decision) {
	switch {
	case decision.Status != nil && decision.Status.Phase == v1beta1.ContainerRecreateRequestCompleted && !crr.Completed(request):
		recordEnd(recorder, request, decision.Status)
	case decision.Pod != nil && ended(request):
		recorder.Eventf(request, pod, corev1.EventTypeNormal, "PodReadinessReturned", "Undrain", "Pod %s is no longer kept not ready", pod.Name)
	case decision.Pod != nil:
		recorder.Eventf(request, pod, corev1.EventTypeNormal, "PodMadeNotReady", "Drain", "%s", withRequester("Pod "+pod.Name+" is made not ready before its containers are stopped", request))
	}
}

// recordEnd sends an Event about a request that the manager has ended in place of the daemon.
func recordEnd(recorder events.EventRecorder, request *v1beta1.ContainerRecreateRequest, status *v1beta1.ContainerRecreateRequestStatus) {
	reason := crr.ReasonContainerFailed
	if failed := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionFailed); failed != nil {
		reason = failed.Reason
	}
	recorder.Eventf(request, nil, corev1.EventTypeWarning, reason, "End", "%s", withRequester(status.Message, request))
}

// withRequester appends who requested the restart and why.
func withRequester(message string, request *v1beta1.ContainerRecreateRequest) string {
	if by := requester.Clause(request); by != "" {
		return message + ", " + by
	}
	return message
}
