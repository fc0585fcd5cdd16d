package manager

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// publish tells the user, as an Event of the request, what the manager has done beyond bookkeeping.
func publish(recorder events.EventRecorder, request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, done crr.LifecycleDecision) {
	switch {
	case done.Status != nil && done.Status.Phase == v1beta1.ContainerRecreateRequestCompleted && !crr.Completed(request):
		publishEnd(recorder, request, done.Status)
	case done.Pod != nil && ended(request):
		recorder.Eventf(request, pod, corev1.EventTypeNormal, "PodReadinessReturned", "Undrain", "Pod %s may be ready again", pod.Name)
	case done.Pod != nil:
		recorder.Eventf(request, pod, corev1.EventTypeNormal, "PodMadeNotReady", "Drain", "Pod %s is taken out of its Services before its containers are stopped", pod.Name)
	}
}

// publishEnd is for a request that the manager ended in the daemon's place.
func publishEnd(recorder events.EventRecorder, request *v1beta1.ContainerRecreateRequest, status *v1beta1.ContainerRecreateRequestStatus) {
	reason := crr.ReasonContainerFailed
	if failed := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionFailed); failed != nil {
		reason = failed.Reason
	}
	recorder.Eventf(request, nil, corev1.EventTypeWarning, reason, "End", "%s", status.Message)
}
