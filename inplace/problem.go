package inplace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// startProblem returns why kubelet does not start the container, or nil if nothing is known to prevent it.
func (v *view) startProblem(status *corev1.ContainerStatus) *Decision {
	if status == nil {
		return nil
	}
	if kubelet.RestartPolicyOf(v.pod, status.Name).Final(status) {
		d := blocked(status.Name, BlockedNotRestarted, "container %s has ended with code %d and its restart policy does not restart it",
			status.Name, status.State.Terminated.ExitCode)
		d.Final = true
		return d
	}
	waiting := status.State.Waiting
	if waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
		return nil
	}
	d := blocked(status.Name, waiting.Reason, "container %s: %s", status.Name, oneLine(waiting.Message))
	if image := v.delayedImage(status); image != "" {
		d.Message = fmt.Sprintf("container %s is not started with %s before the end of kubelet's crash back-off, because kubelet has tried to start it "+
			"with this image within the last 10 minutes; kubectl refit restart starts it at once if the image can be pulled", status.Name, image)
	}
	d.Again, d.Delayed = kubelet.BackoffUntil(status), v.delayed(status)
	d.Final = waiting.Reason == "InvalidImageName" || waiting.Reason == "ErrImageNeverPull"
	return d
}

// ofSuperseded reports whether kubelet still says why it does not start an image that was in the spec only for a moment. It goes on
// saying so until the attempt with the present image has ended, although it has observed the present spec.
func (v *view) ofSuperseded(container *corev1.Container, status *corev1.ContainerStatus) bool {
	if status.State.Waiting == nil {
		return false
	}
	message := foreign.Cut(status.State.Waiting.Message, 4*maxMessage)
	return slices.ContainsFunc(v.record.Extension().Instances[container.Name].Superseded, func(image string) bool {
		if sameImageName(image, container.Image) {
			return false
		}
		full, err := reference.ParseNormalizedNamed(image)
		return strings.Contains(message, strconv.Quote(image)) || err == nil && strings.Contains(message, strconv.Quote(reference.TagNameOnly(full).String()))
	})
}

// delayedImage returns the new image of a container if kubelet has stopped the container for it and delays the first
// start with it, or else "". The key of kubelet's crash back-off has the image and the resources, so the back-off of an
// image continues when the image comes back.
func (v *view) delayedImage(status *corev1.ContainerStatus) string {
	was, container := v.record.Extension().Instances[status.Name], plan.Find(&v.pod.Spec, status.Name)
	if !v.delayed(status) || container == nil || container.Image == was.Image {
		return ""
	}
	return container.Image
}

// delayed reports whether kubelet's crash back-off delays the first instance after the update.
func (v *view) delayed(status *corev1.ContainerStatus) bool {
	was, ended := v.record.Extension().Instances[status.Name], status.LastTerminationState.Terminated
	return status.State.Waiting.Reason == kubelet.ReasonCrashLoopBackOff && ended != nil && was.ContainerID != "" && was.ContainerID == ended.ContainerID
}

// maxMessage limits messages taken from kubelet, in bytes.
const maxMessage = 500

func oneLine(text string) string {
	return foreign.Shorten(strings.Join(strings.Fields(foreign.Cut(text, 4*maxMessage)), " "), maxMessage)
}
