package restart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/kubelet"
)

// board is what is known of the restarts of a rollout: a row for each container of each request. Times are those at which
// changes were seen, from when the request was first seen.
type board struct {
	rows []*row
	pods map[string]*corev1.Pod
}

func newBoard() *board { return &board{pods: map[string]*corev1.Pod{}} }

// row is the restart of one container of one pod.
type row struct {
	pod, container, old, new string
	term, start, ready       time.Duration // zero until it has happened
	state                    string
	ended, failed            bool
	since, seen              time.Time // when the request was first seen, and last changed
}

// request updates the row of a request. It returns what is new, a line for each row that has changed.
func (b *board) request(request *v1beta1.ContainerRecreateRequest, now time.Time) []string {
	var news []string
	for _, container := range request.Spec.Containers {
		r := b.row(request.Spec.PodName, container.Name, now)
		before := *r
		if container.StatusContext != nil {
			r.old = short(container.StatusContext.ContainerID)
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

// advance fills in how far the restart of the row's container is.
func (r *row) advance(request *v1beta1.ContainerRecreateRequest, elapsed time.Duration) {
	state := "waiting"
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

// instance fills in the instance that runs now, if it is another than that which was stopped.
func (b *board) instance(r *row, now time.Time) {
	pod := b.pods[r.pod]
	if pod == nil || r.old == "" {
		return
	}
	status := kubelet.StatusOf(pod, r.container)
	if status == nil || status.State.Running == nil || short(status.ContainerID) == r.old {
		return
	}
	r.new = short(status.ContainerID)
	r.start = cmp.Or(r.start, now.Sub(r.since))
}

// pod updates the rows of a pod.
func (b *board) pod(pod *corev1.Pod, now time.Time) {
	b.pods[pod.Name] = pod
	for _, r := range b.rows {
		if r.pod == pod.Name && r.new == "" {
			b.instance(r, now)
		}
	}
}

func (b *board) row(pod, container string, now time.Time) *row {
	for _, r := range b.rows {
		if r.pod == pod && r.container == container {
			return r
		}
	}
	r := &row{pod: pod, container: container, since: now}
	b.rows = append(b.rows, r)
	return r
}

// plain is the row as a line, for where there is no terminal.
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

// shownRows bounds the table on a terminal. Those that have not ended are shown first, then the last that have.
const shownRows = 15

// lines are those of the table, for a terminal.
func (b *board) lines(colour cli.Colour) []string {
	rows := slices.Clone(b.rows)
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(order(x)-order(y), y.seen.Compare(x.seen))
	})
	rows = rows[:min(len(rows), shownRows)]
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(strings.Compare(x.pod, y.pod), strings.Compare(x.container, y.container))
	})
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POD\tCONTAINER\tOLD\tNEW\tTERM\tSTART\tREADY\tSTATE")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.pod, r.container, digits(r.old), digits(r.new), seconds(r.term), seconds(r.start), seconds(r.ready), r.painted(colour))
	}
	_ = table.Flush() // to memory
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func order(r *row) int {
	switch {
	case r.failed:
		return 0
	case !r.ended:
		return 1
	}
	return 2
}

func (r *row) painted(colour cli.Colour) string {
	switch {
	case r.failed:
		return colour.Red(r.state)
	case r.ended:
		return colour.Green(r.state)
	}
	return colour.Yellow(r.state)
}

// digits of a container ID without the name of its runtime.
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
