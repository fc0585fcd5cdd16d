package history

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
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
func (c *checker) verdicts() {
	for _, r := range c.requests {
		end := r.terminal()
		if end == nil || end.Request.Status.Message == "" {
			continue
		}
		c.notEarly(r, *end)
		for _, state := range end.Request.Status.ContainerRecreateStates {
			if state.Phase == v1beta1.ContainerRecreateRequestFailed && bareID(state.ContainerID) != "" {
				c.notRecreated(r, state, *end)
			}
		}
	}
}

// notEarly checks that a request that failed by its deadline had one, and that it was over.
func (c *checker) notEarly(r *request, end Write) {
	if !slices.ContainsFunc(end.Request.Status.Conditions, func(d metav1.Condition) bool { return d.Reason == deadlineExceeded }) {
		return
	}
	seconds := r.spec().ActiveDeadlineSeconds
	if seconds == nil {
		c.violate("verdict", "request "+r.String(), "failed by a deadline, and has none", r.created.Line, end.Line)
		return
	}
	deadline := r.created.Request.CreationTimestamp.Add(time.Duration(*seconds) * time.Second)
	if before := deadline.Sub(end.Received); before > early {
		c.violate("verdict", "request "+r.String(), fmt.Sprintf("failed by its deadline %s before it", before.Round(time.Millisecond)),
			r.created.Line, end.Line)
	}
}

// notRecreated checks that no other container had been running and ready for long enough to be seen, in the place of one
// that is called failed.
func (c *checker) notRecreated(r *request, state v1beta1.ContainerRecreateRequestRecreateState, end Write) {
	p := c.pods[r.podUID]
	if p == nil || p.deleted != nil || c.firstStop(state.ContainerID) == nil {
		return
	}
	up := unseen
	if strategy := r.spec().Strategy; strategy != nil {
		up += time.Duration(strategy.MinStartedSeconds) * time.Second
	}
	var since *Write
	for n := range p.statuses {
		w := &p.statuses[n]
		if !w.Received.Before(end.Received) {
			break
		}
		ready := slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == state.Name && replaced(s, state.ContainerID)
		})
		if !ready {
			since = nil
		} else if since == nil {
			since = w
		}
	}
	if since == nil {
		return
	}
	if took := unimpeded(c.Faults, r.node(), since.Received, end.Received); took > up {
		c.violate("verdict", "request "+r.String(), fmt.Sprintf("container %s is called failed, and its replacement had been ready for %s",
			state.Name, took.Round(time.Millisecond)), since.Line, end.Line)
	}
}
