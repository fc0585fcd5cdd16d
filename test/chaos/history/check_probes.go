package history

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probes checks I8.
func (c *checker) probes() {
	turns := map[string][]Turn{} // by pod UID
	for _, t := range c.Turns {
		turns[t.PodUID] = append(turns[t.PodUID], t)
	}
	for uid, all := range turns {
		slices.SortFunc(all, func(a, b Turn) int { return a.At.Compare(b.At) })
		p := c.pods[uid]
		if p == nil {
			c.violate("I8", "pod "+uid, "nothing was ever written to it", all[0].line)
			continue
		}
		for n, t := range all {
			until := c.End
			if n+1 < len(all) {
				until = all[n+1].At
			}
			c.follows(p, t, until)
		}
		c.unprovoked(p, all)
	}
}

// follows checks that the condition has become what the application says when it has had time to.
func (c *checker) follows(p *pod, t Turn, until time.Time) {
	for _, w := range p.statuses {
		if w.Received.Before(t.At) || !w.Received.Before(until) {
			continue
		}
		if status := c.probed(w.Pod); status == wanted(t) {
			c.report.Totals.Followed++
			c.report.Totals.Slowest = max(c.report.Totals.Slowest, unimpeded(c.Faults, "", t.At, w.Received))
			break
		}
	}
	due, judged := freeSince(c.Faults, t.At, c.options.Follow, until)
	if !judged {
		return
	}
	said, last := corev1.ConditionStatus("nothing"), t.line
	for _, w := range p.statuses {
		if w.Received.Before(due) {
			said, last = cmp.Or(c.probed(w.Pod), "nothing"), w.Line
		}
	}
	unsure := slices.ContainsFunc(p.unsure, func(w Write) bool { return !w.Done.Before(t.At) && w.Received.Before(due) })
	if said != wanted(t) && !unsure {
		c.violate("I8", "pod "+p.namespace+"/"+p.name, fmt.Sprintf("its condition says %s %s after its application has turned, not counting faults, want %s",
			said, c.options.Follow, wanted(t)), t.line, last)
	}
}

// unprovoked checks that there are no more marks than turns: what did not change is not written. A probe that asks
// through the runtime may have other answers while that is broken.
func (c *checker) unprovoked(p *pod, turns []Turn) {
	if turns[0].Asked == AskedByExec {
		return
	}
	var marks []Line
	for _, w := range c.Writes {
		if w.User == c.options.Manager && w.Resource == "pods" && w.Pod != nil && string(w.Pod.UID) == p.uid && w.stored() {
			marks = append(marks, w.Line)
		}
	}
	first := 1 // before the first turn
	if allowed := len(turns) + first; len(marks) > allowed {
		c.violate("I8", "pod "+p.namespace+"/"+p.name, fmt.Sprintf("marked %d times for %d turns", len(marks), len(turns)), marks...)
	}
}

// probed is the condition's status; empty: there is none.
func (c *checker) probed(pod *corev1.Pod) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if string(condition.Type) == c.options.Probed {
			return condition.Status
		}
	}
	return ""
}

func wanted(t Turn) corev1.ConditionStatus {
	if t.Up {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// freeSince is when so much time without faults has passed since begin, if that is before end. A fault of any node
// counts: the manager, which marks the pods, may be on it.
func freeSince(faults []Fault, begin time.Time, free time.Duration, end time.Time) (time.Time, bool) {
	if unimpeded(faults, "", begin, end) < free {
		return time.Time{}, false
	}
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	n := sort.Search(int(end.Sub(begin)/time.Millisecond)+1, func(ms int) bool { return unimpeded(faults, "", begin, after(ms)) >= free })
	return after(n), true
}
