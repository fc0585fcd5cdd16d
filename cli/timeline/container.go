package timeline

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/kubelet"
)

// container returns the moments of one container.
func (r restart) container(name string, begin Moment) []Moment {
	previous := begin.at
	var moments []Moment
	for _, look := range []func(string, time.Time) Moment{r.stopping, r.ended, r.started} {
		m := look(name, previous)
		m.Container = name
		m = r.whole(m, previous)
		if m.at.After(previous) {
			previous = m.at
		}
		moments = append(moments, m)
	}
	return moments
}

func (r restart) stopping(name string, _ time.Time) Moment {
	by := "by ContainerRecreateRequest " + r.request.Name
	e, m := r.event(whatStopping, func(e *corev1.Event) bool {
		return e.Reason == "Killing" && of(e, name) && (strings.HasSuffix(e.Message, by) || strings.Contains(e.Message, by+","))
	})
	if e == nil {
		if other := r.otherStop(name); other != "" {
			return unknown(whatStopping, "another request has stopped the container: "+other)
		}
		return unknown(whatStopping, r.noKilling(name))
	}
	return m
}

const (
	// combined begins the message of an Event that stands for several. The rest is the message of the last one. Source:
	// EventAggregatorByReasonMessageFunc in client-go, which does so from the eleventh within ten minutes on.
	combined = "(combined from similar events)"
	// eventTTL is the default of kube-apiserver's --event-ttl.
	eventTTL = time.Hour
)

// noKilling returns why there may be no Event about the stop of a container.
func (r restart) noKilling(name string) string {
	if slices.ContainsFunc(r.events, func(e corev1.Event) bool {
		return e.Reason == "Killing" && of(&e, name) && strings.HasPrefix(e.Message, combined)
	}) {
		return "the Events Killing of many stops of the container are combined into one, which names only the last of them"
	}
	if time.Since(r.request.CreationTimestamp.Time) < eventTTL {
		return "there is no Event Killing of the request; of many Events about a pod some are not sent"
	}
	return "there is no Event Killing of the request; Events are kept for an hour, unless kube-apiserver has another --event-ttl"
}

// otherStop returns the name of another request that stopped the container while this one was under way.
func (r restart) otherStop(name string) string {
	const by = " by ContainerRecreateRequest "
	e, _ := r.event(whatStopping, func(e *corev1.Event) bool {
		at, _ := eventTime(e)
		return e.Reason == "Killing" && of(e, name) && strings.Contains(e.Message, by) && !at.Before(r.request.CreationTimestamp.Time) &&
			(r.request.Status.CompletionTime == nil || !at.After(r.request.Status.CompletionTime.Time))
	})
	if e == nil {
		return ""
	}
	_, other, _ := strings.Cut(e.Message, by)
	other, _, _ = strings.Cut(other, ",")
	return other
}

// ended returns when the instance ended that the request stopped.
func (r restart) ended(name string, _ time.Time) Moment {
	if e, _ := r.event("", func(e *corev1.Event) bool {
		return e.InvolvedObject.UID == r.request.UID && e.Reason == "RestartBackoffSkipped" && strings.Contains(e.Message, "container "+name+" ")
	}); e != nil {
		return unknown(whatEnded, "it was removed so that kubelet's back-off does not apply (Event RestartBackoffSkipped)")
	}
	if r.pod == nil {
		return unknown(whatEnded, "the pod is gone")
	}
	if status := kubelet.StatusOf(r.pod, name); status != nil {
		if last := status.LastTerminationState.Terminated; last != nil && last.ContainerID == r.stopped(name) && last.ContainerID != "" {
			return seconds(whatEnded, last.FinishedAt, "lastState of the container")
		}
	}
	return unknown(whatEnded, "lastState of the container is of another instance")
}

// started returns when the first instance after the stop was started. An Event of kubelet is more precise than the
// container's status, and remains when the container is restarted again.
func (r restart) started(name string, stop time.Time) Moment {
	end := r.end()
	within := func(at time.Time, whole bool) bool {
		earliest := stop
		if whole {
			earliest = earliest.Truncate(time.Second)
		}
		return !at.Before(earliest) && !at.After(end)
	}
	if e, m := r.event(whatStarted, func(e *corev1.Event) bool {
		return e.Reason == "Started" && of(e, name) && within(eventTime(e))
	}); e != nil {
		return m
	}
	if r.pod == nil {
		return unknown(whatStarted, "the pod is gone")
	}
	status := kubelet.StatusOf(r.pod, name)
	switch {
	case status == nil || status.State.Running == nil:
		return unknown(whatStarted, "the container is not running now")
	case status.ContainerID == r.stopped(name) || !within(status.State.Running.StartedAt.Time, true):
		return unknown(whatStarted, "the instance that runs now is not the first after the stop")
	}
	return seconds(whatStarted, status.State.Running.StartedAt, "state of the container")
}

// stopped returns the ID of the instance that the request stops.
func (r restart) stopped(name string) string {
	if state, ok := crr.RecreateStateOf(r.request, name); ok && state.ContainerID != "" {
		return state.ContainerID
	}
	for _, c := range r.request.Spec.Containers {
		if c.Name == name && c.StatusContext != nil {
			return c.StatusContext.ContainerID
		}
	}
	return ""
}

// of reports whether an Event is about a container with this name.
func of(e *corev1.Event, container string) bool {
	return strings.HasSuffix(e.InvolvedObject.FieldPath, "{"+container+"}")
}

// samePod reports whether the pod is the one that the request was admitted for.
func samePod(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) bool {
	uid := request.Labels[v1beta1.LabelPodUID]
	return uid == "" || uid == string(pod.UID)
}
