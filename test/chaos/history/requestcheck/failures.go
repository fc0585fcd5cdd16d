package requestcheck

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

const (
	deadlineExceeded = "DeadlineExceeded"
	// early is how much before its deadline a request may be ended by it: creationTimestamp has whole seconds, and the
	// clocks of the API server and the node differ.
	early = 2 * time.Second
	// unseen is how long a recreated container may be called failed, beside faults.
	unseen = 10 * time.Second
)

// verdicts checks that what failed had a reason to.
func (c check) verdicts() {
	for _, r := range c.Requests {
		end := r.Terminal()
		if end == nil || end.Request.Status.Message == "" {
			continue
		}
		c.notEarly(r, *end)
		for _, state := range end.Request.Status.ContainerRecreateStates {
			if state.Phase == v1beta1.ContainerRecreateRequestFailed && entry.BareID(state.ContainerID) != "" {
				c.notRecreated(r, state, *end)
			}
		}
	}
}

// notEarly checks that a request that failed by its deadline had one, and that it was over.
func (c check) notEarly(r *model.Request, end entry.Write) {
	if !slices.ContainsFunc(end.Request.Status.Conditions, func(d metav1.Condition) bool { return d.Reason == deadlineExceeded }) {
		return
	}
	seconds := r.Spec().ActiveDeadlineSeconds
	if seconds == nil {
		c.Violate("verdict", "request "+r.String(), "failed by a deadline, and has none", r.Created.Line, end.Line)
		return
	}
	deadline := r.Created.Request.CreationTimestamp.Add(time.Duration(*seconds) * time.Second)
	if before := deadline.Sub(end.Received); before > early {
		c.Violate("verdict", "request "+r.String(), fmt.Sprintf("failed by its deadline %s before it", before.Round(time.Millisecond)),
			r.Created.Line, end.Line)
	}
}

// notRecreated checks that no other container had been running and ready for long enough to be seen, in the place of one
// that is called failed. One that was stopped for another request meanwhile was ready until then, whatever kubelet reports.
func (c check) notRecreated(r *model.Request, state v1beta1.ContainerRecreateRequestRecreateState, end entry.Write) {
	p := c.Pods[r.PodUID]
	if p == nil || p.Deleted != nil || c.FirstStop(state.ContainerID) == nil {
		return
	}
	up := unseen
	if strategy := r.Spec().Strategy; strategy != nil {
		up += time.Duration(strategy.MinStartedSeconds) * time.Second
	}
	var since *entry.Write
	var until time.Time
	decided := r.EndWritten()
	for n := range p.Statuses {
		w := &p.Statuses[n]
		if !w.Received.Before(decided) {
			break
		}
		i := slices.IndexFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == state.Name && model.Replaced(s, state.ContainerID)
		})
		if i < 0 {
			since = nil
			continue
		}
		if since == nil || until.Before(w.Received) {
			since = w
		}
		until = decided
		if stop := c.FirstStop(w.Pod.Status.ContainerStatuses[i].ContainerID); stop != nil && stop.Begin.Before(until) {
			until = stop.Begin
		}
	}
	if since == nil {
		return
	}
	if took := entry.Unimpeded(c.Faults, r.Node(), since.Received, until); took > up {
		c.Violate("verdict", "request "+r.String(), fmt.Sprintf("container %s is called failed, and its replacement had been ready for %s",
			state.Name, took.Round(time.Millisecond)), since.Line, end.Line)
	}
}
