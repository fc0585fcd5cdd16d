package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
)

// Reasons of the daemon's Events. The first two are also used by kubelet and OpenKruise.
const (
	eventKilling               = "Killing"
	eventFailedPreStopHook     = "FailedPreStopHook"
	eventRestartBackoffSkipped = "RestartBackoffSkipped"
	eventRecreated             = "ContainersRecreated"
	eventFailed                = "RecreateFailed"
)

// event is the content of one Kubernetes Event.
type event struct {
	about                 corev1.ObjectReference
	kind, reason, message string
}

func (r *Reporter) record(e event) { r.events.Event(e.about, e.kind, e.reason, e.message) }

// Killing must be called before a container is stopped.
func (r *Reporter) Killing(request *crr.Request, pod *corev1.Pod, container string) {
	r.record(event{kubelet.ContainerReference(pod.Namespace, pod.Name, pod.UID, container), corev1.EventTypeNormal, eventKilling,
		withRequester(fmt.Sprintf("Stopping container %s by ContainerRecreateRequest %s", container, request.Name), request)})
}

// FailedPreStopHook must be called with the error of a preStop hook.
func (r *Reporter) FailedPreStopHook(pod *corev1.Pod, container string, err error) {
	r.record(event{kubelet.ContainerReference(pod.Namespace, pod.Name, pod.UID, container), corev1.EventTypeWarning, eventFailedPreStopHook,
		fmt.Sprintf("PreStop hook of container %s: %s; it is stopped nevertheless", container, err)})
}

// BackoffSkipped must be called before exited instances are removed, because the removal avoids kubelet's back-off.
func (r *Reporter) BackoffSkipped(request *crr.Request, container string) {
	r.record(event{aboutRequest(request), corev1.EventTypeNormal, eventRestartBackoffSkipped,
		fmt.Sprintf("Removing the exited instance of container %s so that kubelet starts the next without back-off; "+
			"its `kubectl logs --previous` and lastState are lost (annotation %s=%s keeps them)",
			container, v1beta1.AnnotationRestartBackoff, v1beta1.RestartBackoffRespect)})
}

func ended(request *crr.Request, status crr.Status) event {
	if status.Message == "" {
		return event{aboutRequest(request), corev1.EventTypeNormal, eventRecreated,
			withRequester(fmt.Sprintf("Recreated %s of pod %s", wording.Count(len(status.ContainerRecreateStates), "container", "containers"), request.Spec.PodName), request)}
	}
	return event{aboutRequest(request), corev1.EventTypeWarning, eventFailed, withRequester(status.Message, request)}
}

// withRequester appends who created the request and why.
func withRequester(message string, request *crr.Request) string {
	if by := requester.Clause(request); by != "" {
		return message + ", " + by
	}
	return message
}

func aboutRequest(request *crr.Request) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1beta1.GroupVersion().String(), Kind: "ContainerRecreateRequest",
		Namespace: request.Namespace, Name: request.Name, UID: request.UID,
	}
}
