// Package timeline shows when the parts of a restart happened, as far as the objects of the cluster record it, as text and
// as a picture.
package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// Moments of a request and of its containers.
const (
	whatAdmitted  = "admitted"
	whatAccepted  = "accepted"
	whatNotReady  = "pod made not ready"
	whatStopping  = "stop began"
	whatEnded     = "previous instance ended"
	whatStarted   = "new instance started"
	whatReady     = "containers ready"
	whatCompleted = "completed"
)

// Moment is the time of one thing that happened.
type Moment struct {
	Request   string `json:"request,omitempty"` // empty for an update
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"` // empty for the whole request
	What      string `json:"what"`
	// Time is nil if it is not known, or if it has not happened yet.
	Time *metav1.MicroTime `json:"time,omitempty"`
	// WholeSeconds means that the time was recorded in whole seconds.
	WholeSeconds bool `json:"wholeSeconds,omitempty"`
	// NotYet means that it has not happened yet.
	NotYet bool `json:"notYet,omitempty"`
	// Source is where the time was recorded, why it is not known, or what it waits for.
	Source string `json:"source"`

	// at is the time, adjusted within WholeSeconds to the order in which things happen.
	at time.Time
}

// restart is a request with the other objects that record something about it. Pod is nil if it does not exist any more, or
// if another pod has its name.
type restart struct {
	request *v1beta1.ContainerRecreateRequest
	pod     *corev1.Pod
	events  []corev1.Event // of the request and the pod
}

// moments returns the moments of a request, in their expected order.
func (r restart) moments() []Moment {
	begin := r.whole(r.admitted(), time.Time{})
	all := []Moment{begin, r.whole(r.accepted(), begin.at)}
	if strategy := r.request.Spec.Strategy; strategy != nil && strategy.UnreadyGracePeriodSeconds != nil {
		all = append(all, r.whole(r.notReady(), begin.at))
	}
	for _, container := range r.request.Spec.Containers {
		all = append(all, r.container(container.Name, begin)...)
	}
	last := begin.at
	for _, m := range all {
		if m.at.After(last) {
			last = m.at
		}
	}
	ready := r.whole(r.ready(last), last)
	return append(all, ready, r.whole(r.completed(), ready.at))
}

// whole completes a moment of the request. A time in whole seconds is not before the previous one, and an unknown time is
// shown after it.
func (r restart) whole(m Moment, previous time.Time) Moment {
	m = r.await(m)
	m.Request, m.Pod = r.request.Name, r.request.Spec.PodName
	if m.Time == nil {
		m.at = previous
		return m
	}
	m.at = m.Time.Time
	if m.WholeSeconds && previous.After(m.at) && previous.Before(m.at.Add(time.Second)) {
		m.at = previous
	}
	return m
}

func (r restart) admitted() Moment {
	if at, err := foreign.Time(r.request.Annotations[v1beta1.AnnotationAdmittedAt]); err == nil {
		return precise(whatAdmitted, at, "annotation "+v1beta1.AnnotationAdmittedAt+", by refit-manager")
	}
	return seconds(whatAdmitted, r.request.CreationTimestamp, "creationTimestamp of the request")
}

func (r restart) accepted() Moment {
	c := meta.FindStatusCondition(r.request.Status.Conditions, v1beta1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return unknown(whatAccepted, "the request does not have the condition Accepted")
	}
	return seconds(whatAccepted, c.LastTransitionTime, "condition Accepted of the request")
}

func (r restart) notReady() Moment {
	if e, m := r.event(whatNotReady, func(e *corev1.Event) bool { return e.Reason == "PodMadeNotReady" }); e != nil {
		return m
	}
	if c := meta.FindStatusCondition(r.request.Status.Conditions, v1beta1.ConditionPreRecreateGrace); c != nil && c.Status == metav1.ConditionTrue {
		return seconds(whatNotReady, c.LastTransitionTime, "condition PreRecreateGrace of the request")
	}
	return unknown(whatNotReady, "the request does not have the condition PreRecreateGrace")
}

func (r restart) completed() Moment {
	what := whatCompleted
	if !crr.Completed(r.request) {
		return unknown(what, "the request is under way")
	}
	if outcome := crr.OutcomeOf(r.request); outcome.Reason != "" {
		what = "failed: " + outcome.Reason
	}
	if e, m := r.event(what, func(e *corev1.Event) bool {
		return e.InvolvedObject.UID == r.request.UID && (e.Reason == "ContainersRecreated" || e.Reason == "RecreateFailed")
	}); e != nil {
		return m
	}
	if r.request.Status.CompletionTime == nil {
		return unknown(what, "the request does not have a completionTime")
	}
	return seconds(what, *r.request.Status.CompletionTime, "completionTime of the request")
}

// ready returns when all containers of the pod were ready again.
func (r restart) ready(started time.Time) Moment {
	if r.pod == nil {
		return unknown(whatReady, "the pod is gone")
	}
	c := kubelet.Condition(&r.pod.Status, corev1.ContainersReady)
	switch {
	case c == nil || c.Status != corev1.ConditionTrue:
		return unknown(whatReady, notReady+" now")
	case c.LastTransitionTime.Before(&metav1.Time{Time: started.Truncate(time.Second)}):
		return unknown(whatReady, "the pod's condition ContainersReady did not change in the restart")
	case crr.Completed(r.request) && c.LastTransitionTime.After(r.end()):
		return unknown(whatReady, "the pod's condition ContainersReady has changed since")
	}
	return seconds(whatReady, c.LastTransitionTime, "condition ContainersReady of the pod")
}

// slack is the tolerance for clock differences between the API server and nodes, and for whole seconds.
const slack = 2 * time.Second

// end returns a time after all that the request did.
func (r restart) end() time.Time {
	if at := r.request.Status.CompletionTime; at != nil {
		return at.Add(slack)
	}
	return time.Now()
}

// event returns the first Event that matches, and its moment; nil if there is none.
func (r restart) event(what string, matches func(*corev1.Event) bool) (found *corev1.Event, m Moment) {
	for i := range r.events {
		e := &r.events[i]
		if !matches(e) {
			continue
		}
		at, whole := eventTime(e)
		if found == nil || at.Before(m.Time.Time) {
			found, m = e, precise(what, at, fmt.Sprintf("Event %s, by %s", e.Reason, by(e)))
			m.WholeSeconds = whole
		}
	}
	return found, m
}

func by(e *corev1.Event) string {
	if e.ReportingController != "" {
		return e.ReportingController
	}
	return e.Source.Component
}

// eventTime returns when an Event happened last, and whether the time is in whole seconds. The name of an Event that was
// recorded by client-go ends with its first time in nanoseconds (tools/record, util.GenerateEventName).
func eventTime(e *corev1.Event) (at time.Time, whole bool) {
	if !e.EventTime.IsZero() && e.Series == nil {
		return e.EventTime.Time, false
	}
	if e.Series != nil {
		return e.Series.LastObservedTime.Time, false
	}
	if e.Count <= 1 {
		suffix := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
		if nanoseconds, err := strconv.ParseInt(suffix, 16, 64); err == nil {
			if at := time.Unix(0, nanoseconds); at.Truncate(time.Second).Equal(e.FirstTimestamp.Truncate(time.Second)) {
				return at, false
			}
		}
	}
	return e.LastTimestamp.Time, true
}

func precise(what string, at time.Time, source string) Moment {
	return Moment{What: what, Time: new(metav1.NewMicroTime(at)), Source: source}
}

func seconds(what string, at metav1.Time, source string) Moment {
	return Moment{What: what, Time: new(metav1.NewMicroTime(at.Time)), WholeSeconds: true, Source: source}
}

func unknown(what, why string) Moment { return Moment{What: what, Source: why} }
