package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/kubelet"
)

// Reasons of Events of kubelet.
const (
	reasonUnhealthy = "Unhealthy"
	reasonKilling   = "Killing"
	reasonFailed    = "Failed"
)

// Parts of messages of kubelet's Events.
const (
	// definitionChanged is in the message of reason Killing when kubelet replaces a container whose image has been changed.
	definitionChanged = "definition changed"
	pullFailed        = "Failed to pull image"
)

// AddEvents adds to the containers what Events of the pod record: which of their probes have failed, whether kubelet has
// stopped the previous instance because of a probe or a new image, and that the image of a waiting container cannot be
// pulled.
func AddEvents(containers []Container, pod *corev1.Pod, events []corev1.Event) {
	for i := range containers {
		c := &containers[i]
		last := map[string]*corev1.Event{} // by kind of probe
		var killed, replaced, pull *corev1.Event
		for j := range events {
			e := &events[j]
			if !strings.HasSuffix(e.InvolvedObject.FieldPath, "{"+c.Name+"}") {
				continue
			}
			kind, _, _ := strings.Cut(e.Message, " ")
			switch {
			case e.Reason == reasonUnhealthy && (last[kind] == nil || seen(last[kind]).Before(seen(e))):
				last[kind] = e
			case e.Reason == reasonKilling && strings.Contains(e.Message, "probe") && (killed == nil || seen(killed).Before(seen(e))):
				killed = e
			case e.Reason == reasonKilling && strings.Contains(e.Message, definitionChanged) && (replaced == nil || seen(replaced).Before(seen(e))):
				replaced = e
			case e.Reason == reasonFailed && strings.HasPrefix(e.Message, pullFailed) && (pull == nil || seen(pull).Before(seen(e))):
				pull = e
			}
		}
		for _, e := range last {
			c.Probes = append(c.Probes, failure(e))
		}
		slices.Sort(c.Probes)
		c.ended(kubelet.StatusOf(pod, c.Name), killed, replaced, pull)
	}
}

// ended adds why kubelet has stopped the previous instance, and why it cannot start the next.
func (c *Container) ended(status *corev1.ContainerStatus, killed, replaced, pull *corev1.Event) {
	previous := cmp.Or(status.LastTerminationState.Terminated, status.State.Terminated)
	bySelf := c.Cause == CauseExit || c.Cause == CauseUnknown
	switch {
	case bySelf && replaced != nil && during(replaced, previous):
		c.Cause, c.Message = CauseUpdate, "replaced by an in-place update of the pod"
	case bySelf && killed != nil && during(killed, previous):
		c.Cause, c.Message = CauseExit, "the previous instance "+ending(previous)+"; kubelet stopped it: "+requester.Printable(killed.Message)
	}
	if pull != nil && status.State.Waiting != nil && previous != nil && !seen(pull).Before(previous.FinishedAt.Time) {
		c.Waiting = fmt.Sprintf("kubelet cannot pull its image: %s (at %s); a ContainerRecreateRequest does not change that", requester.Printable(pull.Message), seen(pull).UTC().Format(time.RFC3339))
	}
}

// during reports whether the Event happened while the instance was running.
func during(e *corev1.Event, instance *corev1.ContainerStateTerminated) bool {
	return instance != nil && !seen(e).Before(instance.StartedAt.Time) && !seen(e).After(instance.FinishedAt.Add(clockDifference))
}

func failure(e *corev1.Event) string {
	text := requester.Printable(e.Message)
	if e.Count > 1 {
		return fmt.Sprintf("%s (%d times, last at %s)", text, e.Count, seen(e).UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s (at %s)", text, seen(e).UTC().Format(time.RFC3339))
}

// seen returns when an Event happened last.
func seen(e *corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
