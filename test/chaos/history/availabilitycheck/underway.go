package availabilitycheck

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// underWay is what is under way on other pods, one for each, that who has begun the take must know of.
//
// A pod that is being deleted stands for the one that replaces it, and does not count beside it: what was under way on it is, as long as
// the workload lacks a pod; its eviction is, until the pod that has come in its place is ready or counts itself.
func (c *check) underWay(w *workload, t *take) []*take {
	var found, evicted, deleted []*take
	for _, u := range w.takes {
		counts := u.pod != t.pod && u.underWay(t.begun) && !u.unsure(t.begun) && !u.pod.lost(t.begun) && c.known(u, t)
		if !counts || slices.ContainsFunc(slices.Concat(found, evicted, deleted), func(f *take) bool { return f.pod == u.pod }) {
			continue
		}
		switch {
		case u.evicts:
			evicted = append(evicted, u)
		case !u.pod.present(t.begun):
			deleted = append(deleted, u)
		default:
			found = append(found, u)
		}
	}
	lacks := w.lacks(t.begun)
	evicted = evicted[:min(len(evicted), lacks+w.starting(t, found, evicted))]
	deleted = deleted[:min(len(deleted), max(0, lacks-len(evicted)))]
	return slices.Concat(found, evicted, deleted)
}

// starting is how many pods were created after one of the evictions and are not ready, beside the pod of the take and those that count.
func (w *workload) starting(t *take, counted, evicted []*take) (n int) {
	for _, p := range w.pods {
		after := slices.ContainsFunc(evicted, func(e *take) bool { return e.begun.before(podMoment(p.versions[0])) })
		counts := p == t.pod || slices.ContainsFunc(counted, func(f *take) bool { return f.pod == p })
		if after && !counts && p.present(t.begun) && !ready(p.version(t.begun)) {
			n++
		}
	}
	return n
}

// lacks is how many pods the workload is to have and does not have at that moment.
func (w *workload) lacks(m moment) int { return max(0, w.replicas(m.at, m)-w.present(m)) }

// present is how many pods the workload has, without those that are being deleted.
func (w *workload) present(m moment) (n int) {
	for _, p := range w.pods {
		if p.present(m) {
			n++
		}
	}
	return n
}

// replaced are the first moments after a begin at which the pod shows what was to come, and at which it has been ready as well. What was
// to come are other instances of the containers, or another pod if there are none.
func (p *pod) replaced(begun moment, containers []string, shows func(*corev1.Pod) bool) (changed, again moment) {
	var before *entry.Write
	for i := range p.versions {
		w := &p.versions[i]
		m := podMoment(*w)
		if begun.before(m) && shows(w.Pod) {
			if changed == (moment{}) {
				changed = m
			}
			if ready(w) || before != nil && wasReady(before, w, begun, containers, shows) {
				return changed, m
			}
		}
		before = w
	}
	return changed, moment{}
}

// wasReady reports whether a pod was ready between two versions in which it is not, with what was to come: kubelet writes only the newest
// of its reports. The time when it ceased to be ready shows that it was ready. It may have been ready with the instances before if these
// were not known to have ended, and it ceased when the others had just been started.
func wasReady(before, after *entry.Write, begun moment, containers []string, shows func(*corev1.Pod) bool) bool {
	was, is := unreadySince(before.Pod), unreadySince(after.Pod)
	if was.IsZero() || !is.After(was) || is.Before(begun.at.Truncate(time.Second)) {
		return false
	}
	ended := begun.before(podMoment(*before)) && started(before.Pod, containers).IsZero()
	since := started(after.Pod, containers)
	return shows(before.Pod) || ended || !since.IsZero() && is.Sub(since) >= settled
}

// unreadySince is zero for a pod that is ready.
func unreadySince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// started is when the last of the containers was started; zero if not all of them run.
func started(p *corev1.Pod, containers []string) (last time.Time) {
	for _, name := range containers {
		status := statusOf(p, name)
		if status == nil || status.State.Running == nil {
			return time.Time{}
		}
		if at := status.State.Running.StartedAt.Time; at.After(last) {
			last = at
		}
	}
	return last
}
