package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/kubelet"
)

// Reasons of Events of kubelet.
const (
	reasonUnhealthy = "Unhealthy"
	reasonKilling   = "Killing"
)

// AddProbes adds to the containers which of their probes have failed, and whether kubelet has stopped the previous instance for
// that, as far as Events of the pod record it.
func AddProbes(containers []Container, pod *corev1.Pod, events []corev1.Event) {
	for i := range containers {
		c := &containers[i]
		last := map[string]*corev1.Event{} // by kind of probe
		var killed *corev1.Event
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
			}
		}
		for _, e := range last {
			c.Probes = append(c.Probes, failure(e))
		}
		slices.Sort(c.Probes)
		if status := kubelet.StatusOf(pod, c.Name); killed != nil && c.Cause == CauseExit && during(killed, status.LastTerminationState.Terminated) {
			c.Message += "; kubelet stopped it: " + requester.Printable(killed.Message)
		}
	}
}

// during reports whether the Event was in the time in which the instance ran.
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

// seen is when an Event happened last.
func seen(e *corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
