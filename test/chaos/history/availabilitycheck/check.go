// Package availabilitycheck checks what Refit takes out of service on several pods of a workload at a time, whoever of its actors begins it:
// RestartRollouts, SidecarSets in place and by eviction, InPlaceUpdatePolicies, and users with one pod after the other. It judges the workloads
// that a client of the run has watched, from the pods' versions, the requests, and that client's view of EndpointSlices and PodDisruptionBudgets (I17 to I21).
package availabilitycheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

const (
	// settled is for how long a pod must not have been ready, or a budget have allowed nothing, for the manager to know of it.
	settled = 5 * time.Second
	// noticed is how long what one process has begun may be unknown to another: two managers, or a manager and a user's command. No
	// process of Refit asks another one before it begins something.
	noticed = 2 * time.Second
)

// secondManager is the fault of a manager that does not ask for the lease (test/chaos/records).
const secondManager = "second-manager"

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{Judgement: j}
	c.collectRollouts()
	c.all = c.workloads()
	for _, w := range c.all {
		c.takes(w)
		for _, t := range w.takes {
			if t.most > 0 {
				c.Report.Totals.Taken++
			}
			c.taken(w, t)
		}
		c.endpoints(w)
	}
	c.budgets()
	c.statuses()
}

type check struct {
	*verdict.Judgement
	rollouts map[string]*rollout // by UID
	all      []*workload
}

// taken checks I18 and I19 of what was begun on a pod. What is begun on a pod on which something is under way takes nothing more out.
func (c *check) taken(w *workload, t *take) {
	if t.most == 0 || t.lost || t.pod.doubtful(t.begun) || w.takenBefore(t) {
		return
	}
	under := c.underWay(w, t)
	if len(under)+1 > t.most {
		c.Violate("I19", "workload "+w.String(), fmt.Sprintf("pod %s was begun by %s while %d others were under way; at most %d may be",
			t.pod.Name, t.by, len(under), t.most), append(lines(under), t.line)...)
		return
	}
	if always, _ := t.pod.serves(t.begun.at.Add(-settled), t.begun); !always || c.blind(t.begun.at) {
		return
	}
	unready := w.unready(t, under)
	missing := w.missing(t)
	if n := len(under) + len(unready) + missing; n >= t.most {
		proof := append(lines(under), t.line)
		for _, p := range unready {
			proof = append(proof, p.version(t.begun).Line)
		}
		c.Violate("I18", "workload "+w.String(), fmt.Sprintf("pod %s served and was taken by %s, with %d under way, %d not ready and %d missing; at most %d may be unavailable",
			t.pod.Name, t.by, len(under), len(unready), missing, t.most), proof...)
	}
}

func lines(takes []*take) []entry.Line {
	var all []entry.Line
	for _, t := range takes {
		all = append(all, t.line)
	}
	return all
}

// takenBefore reports whether something else is under way on the pod of the take.
func (w *workload) takenBefore(t *take) bool {
	return slices.ContainsFunc(w.takes, func(u *take) bool { return u != t && u.pod == t.pod && u.underWay(t.begun) })
}

// known reports whether who has begun the later take must know of the earlier one: one process does at once.
func (c *check) known(earlier, later *take) bool {
	after := later.begun.at.Sub(earlier.begun.at)
	if earlier.user != later.user {
		return after >= noticed
	}
	return after >= settled || !slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return (f.OfManagers() || f.Kind == secondManager) && f.Overlaps(earlier.begun.at, later.begun.at)
	})
}

// blind reports whether the manager may not know of the pods what was stored lately.
func (c *check) blind(at time.Time) bool {
	return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return (f.OfControlPlane() || f.OfManagers()) && f.Overlaps(at.Add(-2*settled), at)
	})
}

// unready are the other pods that were not ready for long enough, beside those that are under way.
func (w *workload) unready(t *take, under []*take) []*pod {
	since := t.begun.at.Add(-settled)
	var found []*pod
	for _, p := range w.pods {
		counted := p == t.pod || slices.ContainsFunc(under, func(u *take) bool { return u.pod == p })
		if counted || !p.present(t.begun) || !p.versions[0].Received.Before(since) || p.doubtful(t.begun) {
			continue
		}
		if _, never := p.serves(since, t.begun); never {
			found = append(found, p)
		}
	}
	return found
}

// missing is how many pods the workload has lacked for long enough.
func (w *workload) missing(t *take) int {
	since := t.begun.at.Add(-settled)
	return max(0, w.replicas(since, t.begun)-max(w.present(moment{at: since}), w.present(t.begun)))
}
