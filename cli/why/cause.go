package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	crrrecord "github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// requested sets the cause to a request that has restarted the container, or restarts it now.
func (c *Container) requested(request *v1beta1.ContainerRecreateRequest, running bool) {
	c.Cause, c.Request = CauseRequest, request.Name
	c.RequestedBy = requester.Printable(request.Annotations[v1beta1.AnnotationRequestedBy])
	c.Reason = requester.Printable(request.Annotations[v1beta1.AnnotationReason])
	done := "restarted"
	if !running {
		done = "stopped"
	}
	c.Message = fmt.Sprintf("%s by ContainerRecreateRequest %s of %s", done, request.Name, request.CreationTimestamp.UTC().Format(time.RFC3339))
	if by := requester.Clause(request); by != "" {
		c.Message += ", " + by
	}
	if !running {
		c.Message += "; kubelet has not started it again yet"
	}
}

// recordedStops returns the requests with the instances that those under way have begun to stop in their container states.
func recordedStops(requests []v1beta1.ContainerRecreateRequest) []v1beta1.ContainerRecreateRequest {
	out := slices.Clone(requests)
	for i := range out {
		if !crr.Completed(&out[i]) {
			out[i] = *crrrecord.Begun(&out[i])
		}
	}
	return out
}

// stopped returns the ID of the instance that the request has stopped, or has begun to stop; "" if there is none. The status of
// a request under way may show the beginning of a stop until 10 s after its end.
func stopped(request *v1beta1.ContainerRecreateRequest, container string) string {
	id := crr.Stopped(request, container)
	if state, ok := crr.RecreateStateOf(request, container); id == "" && ok && !crr.Completed(request) {
		return state.ContainerID
	}
	return id
}

// stoppedBy returns the request that has stopped the last instance of a container that does not run; nil if none has.
func stoppedBy(requests []v1beta1.ContainerRecreateRequest, status *corev1.ContainerStatus) *v1beta1.ContainerRecreateRequest {
	if status.State.Running != nil {
		return nil
	}
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	for i := range requests {
		id := stopped(&requests[i], status.Name)
		if id != "" && id == status.ContainerID && (ended == nil || ended.ContainerID == id) {
			return &requests[i]
		}
	}
	return nil
}

// updated reports whether the pod's record of an in-place update has the image of the previous instance.
func updated(recorded *record.Record, status *corev1.ContainerStatus) bool {
	if recorded == nil {
		return false
	}
	last, ok := recorded.State.LastContainerStatuses[status.Name]
	previous := status.LastTerminationState.Terminated
	if was := recorded.Extension().Instances[status.Name].ContainerID; was != "" && previous != nil && previous.ContainerID != was {
		return false // an instance of the new image, which has ended since
	}
	return ok && last.ImageID != status.ImageID && (previous == nil || !previous.FinishedAt.Time.Before(recorded.State.UpdateTimestamp.Add(-clockDifference)))
}

// updating reports whether kubelet has stopped the last instance for an in-place update, and has not started the next one.
func updating(recorded *record.Record, status *corev1.ContainerStatus) bool {
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if recorded == nil || ended == nil || status.State.Running != nil {
		return false
	}
	last, ok := recorded.State.LastContainerStatuses[status.Name]
	return ok && last.ImageID == status.ImageID && recorded.State.NextContainerImages[status.Name] == "" &&
		!ended.FinishedAt.Time.Before(recorded.State.UpdateTimestamp.Add(-clockDifference))
}

// forgotten reports whether an update before the recorded one may have replaced the previous instance, because a record has
// only the containers of the last update. An instance that has exceeded its memory limit has ended for that reason.
func forgotten(recorded *record.Record, status *corev1.ContainerStatus) bool {
	previous := status.LastTerminationState.Terminated
	if recorded == nil || previous == nil || previous.Reason == "OOMKilled" || recorded.State.UpdateTimestamp.IsZero() {
		return false
	}
	return !names(recorded, status.Name) && previous.FinishedAt.Time.Before(recorded.State.UpdateTimestamp.Add(clockDifference))
}

// waiting returns what a container waits for.
func waiting(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	w := status.State.Waiting
	if w == nil {
		return ""
	}
	until := kubelet.BackoffUntil(status)
	if until.IsZero() {
		return strings.TrimSuffix(w.Reason+": "+requester.Printable(w.Message), ": ")
	}
	text := "kubelet's back-off: it starts the container at " + until.UTC().Format(time.RFC3339) + "; a ContainerRecreateRequest starts it at once"
	container := kubelet.Container(&pod.Spec, status.Name)
	if container != nil && !sameImage(container.Image, status.Image) {
		text += ", if the node has the image " + container.Image + " or can pull it: the last instance was of " + status.Image
	}
	return text
}

// sameImage reports whether two names are of the same image, as far as the names show it.
func sameImage(wanted, ran string) bool {
	a, errA := image.Parse(wanted)
	b, errB := image.Parse(ran)
	return wanted == ran || ran == "" || errA == nil && errB == nil && a == b
}
