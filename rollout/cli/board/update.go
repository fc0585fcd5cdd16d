package board

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

// Progress is how far the update of a pod in place is.
type Progress struct {
	// Containers that change.
	Containers []string
	// Old are the IDs of the instances before the update, by container. A container that is not replaced has none.
	Old   map[string]string
	State string
	// Ended says that the update has ended, and Failed that it has failed.
	Ended, Failed bool
}

// Update updates the rows of a pod that is updated in place. It returns a line for each row that has changed.
func (b *Board) Update(pod *corev1.Pod, to Progress, now time.Time) []string {
	b.pods[pod.Name] = pod
	var news []string
	for _, name := range to.Containers {
		r := b.row(pod.Name, name, now)
		if r.another(to, name) {
			*r = row{pod: pod.Name, container: name, since: now}
		}
		if id := to.Old[name]; id != "" {
			r.old = ShortID(id)
		}
		elapsed := now.Sub(r.since)
		if status := kubelet.StatusOf(pod, name); r.old != "" && status != nil && (status.State.Running == nil || ShortID(status.ContainerID) != r.old) {
			r.term = cmp.Or(r.term, elapsed)
		}
		b.instance(r, now)
		switch {
		case !to.Ended:
			r.ready = 0
		case !to.Failed:
			r.ready = cmp.Or(r.ready, elapsed)
		}
		changed := r.state != to.State
		r.state, r.ended, r.failed = to.State, to.Ended, to.Failed
		if changed {
			r.seen = now
			news = append(news, r.plain())
		}
	}
	return news
}

// another reports whether to is another update than the one that the row shows. A pod whose update has ended may be not ready for a
// moment: what was replaced stays the same then.
func (r *row) another(to Progress, container string) bool {
	if id := to.Old[container]; id != "" && r.old != "" {
		return ShortID(id) != r.old
	}
	return r.ended && !to.Ended
}
