// Package board is the table of a rollout's restarts: what is known about each container, and how it is shown on a
// terminal. Watches and writes must stay out.
package board

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/kubelet"
)

// Board holds what is known about the restarts of a rollout, with a row for each container of each request. Times are
// those at which changes were observed, relative to when the request was first observed.
type Board struct {
	rows []*row
	pods map[string]*corev1.Pod
}

// New returns a board without rows.
func New() *Board { return &Board{pods: map[string]*corev1.Pod{}} }

// Empty reports whether there are no rows.
func (b *Board) Empty() bool { return len(b.rows) == 0 }

// row is the restart of one container of one pod.
type row struct {
	pod, container, old, new string
	term, start, ready       time.Duration // zero if it has not happened yet
	state                    string
	ended, failed            bool
	since, seen              time.Time // when the request was first observed, and when it last changed
}

// Request updates the rows of a request. It returns a line for each row that has changed.
func (b *Board) Request(request *v1beta1.ContainerRecreateRequest, now time.Time) []string {
	var news []string
	for _, container := range request.Spec.Containers {
		r := b.row(request.Spec.PodName, container.Name, now)
		before := *r
		if container.StatusContext != nil {
			r.old = ShortID(container.StatusContext.ContainerID)
		}
		r.advance(request, now.Sub(r.since))
		b.instance(r, now)
		if r.state != before.state {
			r.seen = now
			news = append(news, r.plain())
		}
	}
	return news
}

// advance updates the progress of the restart of the row's container.
func (r *row) advance(request *v1beta1.ContainerRecreateRequest, elapsed time.Duration) {
	state := "waiting"
	if _, draining := crr.Draining(request); draining {
		state = "draining"
	}
	for _, s := range request.Status.ContainerRecreateStates {
		if s.Name != r.container {
			continue
		}
		if r.term == 0 && (s.ContainerID != "" || s.IsKilled || s.Phase != v1beta1.ContainerRecreateRequestPending) {
			r.term = elapsed
		}
		switch {
		case s.Phase == v1beta1.ContainerRecreateRequestSucceeded:
			state = "ready"
			r.ready = cmp.Or(r.ready, elapsed)
		case s.Phase == v1beta1.ContainerRecreateRequestFailed:
			state = "failed"
		case s.Phase == v1beta1.ContainerRecreateRequestRecreating:
			state = "starting"
		case r.term > 0:
			state = "stopping"
		}
	}
	if crr.Completed(request) {
		reason := crr.OutcomeOf(request).Reason
		r.ended = true
		if state, r.failed = "restarted", reason != ""; r.failed {
			state = "failed: " + reason
		} else {
			r.ready = cmp.Or(r.ready, elapsed)
		}
	}
	r.state = state
}

// instance sets the instance that runs now, if it is not the stopped one.
func (b *Board) instance(r *row, now time.Time) {
	pod := b.pods[r.pod]
	if pod == nil || r.old == "" {
		return
	}
	status := kubelet.StatusOf(pod, r.container)
	if status == nil || status.State.Running == nil || ShortID(status.ContainerID) == r.old {
		return
	}
	r.new = ShortID(status.ContainerID)
	r.start = cmp.Or(r.start, now.Sub(r.since))
}

// Pod updates the rows of a pod.
func (b *Board) Pod(pod *corev1.Pod, now time.Time) {
	b.pods[pod.Name] = pod
	for _, r := range b.rows {
		if r.pod == pod.Name && r.new == "" {
			b.instance(r, now)
		}
	}
}

func (b *Board) row(pod, container string, now time.Time) *row {
	for _, r := range b.rows {
		if r.pod == pod && r.container == container {
			return r
		}
	}
	r := &row{pod: pod, container: container, since: now}
	b.rows = append(b.rows, r)
	return r
}

// plain returns the row as a line for output without a terminal.
func (r *row) plain() string {
	text := fmt.Sprintf("pod %s, container %s: %s", r.pod, r.container, r.state)
	if r.ready > 0 {
		text += fmt.Sprintf(" in %.1f s", r.ready.Seconds())
	}
	if r.ended && !r.failed {
		text += fmt.Sprintf(" (%s -> %s)", orDash(r.old), orDash(r.new))
	}
	return text
}

// digits returns a container ID without the name of its runtime.
func digits(id string) string {
	if _, after, found := strings.Cut(id, "://"); found {
		return after
	}
	return orDash(id)
}

func orDash(text string) string { return cmp.Or(text, "-") }

func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// ShortID returns the beginning of a container ID, as crictl shows it.
func ShortID(id string) string {
	const shown = len("containerd://") + idDigits
	return id[:min(len(id), shown)]
}
