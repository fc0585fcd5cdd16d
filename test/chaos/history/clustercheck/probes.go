package clustercheck

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// probes checks I8.
func (c check) probes() {
	turns, faults := map[string][]entry.Turn{}, c.untilReconnected() // turns by pod UID
	for _, t := range c.Turns {
		turns[t.PodUID] = append(turns[t.PodUID], t)
	}
	for uid, all := range turns {
		slices.SortFunc(all, func(a, b entry.Turn) int { return a.At.Compare(b.At) })
		p := c.Pods[uid]
		if p == nil {
			c.Violate("I8", "pod "+uid, "nothing was ever written to it", all[0].Line)
			continue
		}
		for n, t := range all {
			until := c.End
			if n+1 < len(all) {
				until = all[n+1].At
			}
			c.follows(p, t, until, faults)
		}
		c.unprovoked(p, all)
	}
}

// follows checks that the condition has become what the application says when it has had time to.
func (c check) follows(p *model.Pod, t entry.Turn, until time.Time, faults []entry.Fault) {
	for _, w := range p.Statuses {
		if w.Received.Before(t.At) || !w.Received.Before(until) {
			continue
		}
		if c.probed(w.Pod).Status == wanted(t) {
			c.Report.Totals.Followed++
			c.Report.Totals.Slowest = max(c.Report.Totals.Slowest, entry.Unimpeded(c.Faults, "", t.At, w.Received))
			break
		}
	}
	if t.Asked != entry.AskedByExec { // what is asked over the network does not need the runtime
		faults = slices.DeleteFunc(slices.Clone(faults), func(f entry.Fault) bool { return f.Kind == entry.KindCall || f.Kind == entry.KindRuntimeRestart })
	}
	begin := t.At
	patience := c.Options.Follow + 4*c.Report.Totals.Late
	due, judged := freeSince(faults, begin, patience, until)
	said, last := c.saidBefore(p, due, t)
	for judged && said != wanted(t) {
		broken := c.notRun(p, t, last)
		if broken == nil || !broken.End.After(begin) {
			break
		}
		begin = broken.End // it has had another result for that, and has the same time again to come back
		due, judged = freeSince(faults, begin, patience, until)
		said, last = c.saidBefore(p, due, t)
	}
	if !judged {
		return
	}
	c.Report.Totals.Due++
	unsure := slices.ContainsFunc(p.Unsure, func(w entry.Write) bool { return !w.Done.Before(t.At) && w.Received.Before(due) })
	if said != wanted(t) && !unsure {
		c.Violate("I8", "pod "+p.Namespace+"/"+p.Name, fmt.Sprintf("its condition says %s %s after its application has turned, not counting faults, want %s",
			said, patience, wanted(t)), t.Line, last.Line)
	}
}

// saidBefore is what the condition was last before that moment, and the write by which.
func (c check) saidBefore(p *model.Pod, due time.Time, t entry.Turn) (corev1.ConditionStatus, entry.Write) {
	said, last := corev1.ConditionStatus("nothing"), entry.Write{Line: t.Line}
	for _, w := range p.Statuses {
		if w.Received.Before(due) {
			said, last = cmp.Or(c.probed(w.Pod).Status, "nothing"), w
		}
	}
	return said, last
}

// notRun is the fault of the runtime during which a command had no result, as the condition says by its reason: nil if it says
// something else, or if the runtime worked.
func (c check) notRun(p *model.Pod, t entry.Turn, by entry.Write) *entry.Fault {
	if t.Asked != entry.AskedByExec || by.Pod == nil || c.probed(by.Pod).Reason != noResult {
		return nil
	}
	for i := range c.Faults {
		if f := &c.Faults[i]; f.On(p.Node()) && slices.Contains(ofRuntime, f.Kind) && f.Overlaps(by.Received.Add(-writeTime), by.Received) {
			return f
		}
	}
	return nil
}

// noResult is the reason of the condition while a probe has no result.
const noResult = "ProbeUnknown"

// writeTime is how long it may take until a result is on its pod.
const writeTime = 2 * time.Second

// relistTime is how long clients of an API server that was started anew may know nothing: after a pause they go on with their
// watch, are told that its version is too old, and list after another pause. 83 s were seen.
const relistTime = 2 * entry.ClientPause

// untilReconnected are the faults; faults of the API server last until its clients know that they are over.
func (c check) untilReconnected() []entry.Fault {
	faults := slices.Clone(c.Faults)
	for i := range faults {
		switch {
		case faults[i].LosesLines():
			faults[i].End = faults[i].End.Add(relistTime)
		case faults[i].OfControlPlane():
			faults[i].End = faults[i].End.Add(c.Options.Reconnect)
		}
	}
	return faults
}

// unprovoked checks that there are no more marks than turns: what did not change is not written. A probe that asks
// through the runtime may have other answers while that is broken.
func (c check) unprovoked(p *model.Pod, turns []entry.Turn) {
	broken := 0
	if turns[0].Asked == entry.AskedByExec {
		for _, f := range c.Faults {
			if f.On(p.Node()) && slices.Contains(ofRuntime, f.Kind) {
				broken++
			}
		}
	}
	var marks []entry.Line
	for _, w := range c.Writes {
		if w.User == c.Options.Manager && w.Resource == "pods" && w.Pod != nil && string(w.Pod.UID) == p.UID && w.Stored() {
			marks = append(marks, w.Line)
		}
	}
	const first = 2 // before the first turn: it does not listen yet, and it does
	if allowed := len(turns) + first + broken*marksByFault; len(marks) > allowed {
		c.Violate("I8", "pod "+p.Namespace+"/"+p.Name, fmt.Sprintf("marked %d times for %d turns", len(marks), len(turns)), marks...)
	}
}

// ofRuntime are the faults during which a command may not be executed, or not in time, and marksByFault how often the answer
// may change for one: it lasts for several periods.
var ofRuntime = []string{entry.KindCall, entry.KindRuntimeRestart, entry.KindNodeLost, entry.KindNodeDiskFull, entry.KindThrottle, entry.KindLargePods}

const marksByFault = 4

// probed is the condition; its status is empty if there is none.
func (c check) probed(pod *corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if string(condition.Type) == c.Options.Probed {
			return condition
		}
	}
	return corev1.PodCondition{}
}

func wanted(t entry.Turn) corev1.ConditionStatus {
	if t.Up {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// freeSince is when so much time without faults has passed since begin, if that is before end. A fault of any node
// counts: the manager, which marks the pods, may be on it.
func freeSince(faults []entry.Fault, begin time.Time, free time.Duration, end time.Time) (time.Time, bool) {
	if entry.Unimpeded(faults, "", begin, end) < free {
		return time.Time{}, false
	}
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	n := sort.Search(int(end.Sub(begin)/time.Millisecond)+1, func(ms int) bool { return entry.Unimpeded(faults, "", begin, after(ms)) >= free })
	return after(n), true
}
