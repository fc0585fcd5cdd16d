// Package updatecheck checks updates of files by sidecars (I10), from what the followers of the files and who asked for the
// updates have written down.
package updatecheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// The events of the applications' logs (test/e2e/testapp).
const (
	eventFile    = "file"
	eventTorn    = "torn"
	eventLoaded  = "loaded"
	eventUpdate  = "update"
	eventUpdated = "updated"
	eventNote    = "note" // of a version that the program does not understand
)

const (
	// noticed is how late a follower may see what is in place already, on a busy machine.
	noticed = 500 * time.Millisecond
	// looked is how late it may see that a version has gone: at a load of 55 on two cores up to 0.62 s after the answer, with
	// the SIGHUP that follows the swap handled before. It is less than the pause before the next update (testapp updates).
	looked = 900 * time.Millisecond
	// handling is how long it may take to handle a signal on such a machine: 1.6 s were seen.
	handling = 5 * time.Second
	// recovery is how long after a fault of the pod what it has broken may still be broken: the pod is ready when the fault ends.
	recovery = 3 * time.Second
	// reconnect is how long after an outage of the API server a sidecar that asks it may not know that it is over.
	reconnect = 10 * time.Second
	// begins is how long after its first line a pod may not answer: its containers start one after the other.
	begins = 30 * time.Second
	// slow is how late programs are on a machine that cannot carry the load, and timesOut what an update takes there whose downloads time out.
	slow     = time.Second
	timesOut = 4 * time.Second
	accepted = 200
	// restoring: the sidecar has begun, and has not found out yet which files the pod had.
	restoring = 503

	good     = "good"
	poison   = "poison"
	hup      = "SIGHUP"
	follower = "app"
	asker    = "asker"
)

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	byPod, late := map[string][]entry.Signal{}, j.Report.Totals.Late
	for _, s := range j.Updates {
		byPod[s.PodUID] = append(byPod[s.PodUID], s)
	}
	for pod, events := range byPod {
		slices.SortStableFunc(events, func(a, b entry.Signal) int { return a.Time.Compare(b.Time) })
		c := check{Judgement: j, pod: pod, events: events, late: late}
		if p := j.Pods[pod]; p != nil {
			c.node = p.Node()
		}
		c.collect()
		c.reads()
		c.signals()
		for _, u := range c.updates {
			c.answer(u)
		}
	}
}

// check is of one pod.
type check struct {
	*verdict.Judgement
	pod     string
	node    string // empty if kubelet has said nothing of the pod
	events  []entry.Signal
	updates []*update
	late    time.Duration // see Late
}

// update is one that was asked for.
type update struct {
	version, kind string
	asked         entry.Signal
	answered      *entry.Signal
	code          int // 0 without an answer
	next          time.Time
}

func (c *check) violate(what string, proof ...entry.Line) {
	c.Violate("I10", "pod "+c.pod, what, proof...)
}

func (c *check) collect() {
	var open *update
	for i := range c.events {
		switch e := &c.events[i]; {
		case e.Container != asker:
		case e.Event == eventUpdate:
			if open != nil {
				open.next = e.Time
			}
			open = &update{version: e.Reason, kind: e.Reason[strings.LastIndexByte(e.Reason, '-')+1:], asked: *e, next: c.End}
			c.updates = append(c.updates, open)
		case e.Event == eventUpdated && open != nil:
			if words := strings.Fields(e.Reason); len(words) > 1 && words[0] == open.version {
				open.code, _ = strconv.Atoi(words[1])
				open.answered = e
			}
		}
	}
}

// reads checks what followers read: whole files of one version, which was to be put in place.
func (c *check) reads() {
	for _, e := range c.events {
		if e.Container != follower {
			continue
		}
		if e.Event == eventTorn {
			c.violate("a reader saw "+e.Reason, e.Line)
			continue
		}
		if e.Event != eventFile || e.Reason == "" {
			continue
		}
		if !slices.ContainsFunc(c.updates, func(u *update) bool {
			return u.version == e.Reason && (u.kind == good || u.kind == poison) && !u.asked.Time.After(e.Time)
		}) {
			c.violate(fmt.Sprintf("a reader saw version %s, which is not to be put in place", e.Reason), e.Line)
		}
	}
}

// signals checks that only the process that is to be signalled is.
func (c *check) signals() {
	for _, e := range c.events {
		if e.Event == entry.EventSignal && e.Signal == hup && e.Container != follower {
			c.violate("a process of container "+e.Container+" was signalled", e.Line)
		}
	}
}

// answer checks that an update did what its answer says.
func (c *check) answer(u *update) {
	c.Report.Totals.Updates++
	if u.answered == nil {
		return
	}
	proof := []entry.Line{u.asked.Line, u.answered.Line}
	switch {
	case u.code == accepted:
		c.Report.Totals.Updated++
		if u.kind != good {
			c.violate("update "+u.version+" was accepted", proof...)
			return
		}
		if loaded, line := c.last(u.answered.Time.Add(noticed), eventLoaded); loaded != u.version && !c.broken(u, entry.KindWatchedKill) {
			c.violate(fmt.Sprintf("update %s was accepted, but the application has %q", u.version, loaded), append(proof, line)...)
		}
	case u.code < 400 || u.code == restoring:
		if u.asked.Time.Sub(c.events[0].Time) > begins+5*c.late && !c.brokenBy(u, unanswering) && !c.gone(u) {
			c.violate(fmt.Sprintf("update %s was not carried out (%d), and nothing was broken", u.version, u.code), proof...)
		}
	case u.kind == good && c.late > slow && (u.answered.Time.Sub(u.asked.Time) > timesOut || c.down(u.answered.Time)): // its downloads were not in time, or the program had not been up in time
		c.Report.Totals.Refused++
	// After the loss of its node the pod's status has the containers from before until kubelet reports the new ones.
	case u.kind == good && !c.broken(u, entry.KindSidecarKill, entry.KindWatchedKill, entry.KindDiskFull, entry.KindSidecarNice, entry.KindNodeLost):
		c.violate(fmt.Sprintf("update %s was refused with %d, and nothing was broken", u.version, u.code), proof...)
	default:
		c.Report.Totals.Refused++
	}
	c.inPlace(u, proof)
}

// inPlace checks what is in place some time after the answer, if nothing else was asked for by then.
func (c *check) inPlace(u *update, proof []entry.Line) {
	at := u.answered.Time.Add(looked + c.late)
	if handled := c.handled(at); handled.After(at) {
		at = handled.Add(noticed)
	}
	if u.code == 0 || u.code == restoring || at.After(u.next) || c.broken(u, entry.KindSidecarKill) {
		return
	}
	if c.blind(at) || u.code != accepted && (c.blind(u.asked.Time) || c.handled(u.asked.Time).After(u.asked.Time)) {
		return
	}
	want, _ := c.last(u.asked.Time, eventFile, eventLoaded)
	if u.code == accepted {
		want = u.version
	}
	if now, line := c.last(at, eventFile, eventLoaded); now != want {
		c.violate(fmt.Sprintf("after the answer %d to update %s the version in place is %q, want %q", u.code, u.version, now, want), append(proof, line)...)
	}
}

// last is the version that the follower's last event of those kinds names.
func (c *check) last(at time.Time, kinds ...string) (string, entry.Line) {
	var found entry.Signal
	for _, e := range c.events {
		if e.Container == follower && slices.Contains(kinds, e.Event) && !e.Time.After(at) {
			found = e
		}
	}
	return found.Reason, found.Line
}

// blind reports whether a follower may have been killed since its last event before that time: nobody has seen what has
// come into place since.
func (c *check) blind(at time.Time) bool {
	var seen time.Time
	for _, e := range c.events {
		if e.Container == follower && !e.Time.After(at) {
			seen = e.Time
		}
	}
	return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindWatchedKill && f.On(c.node) && f.Begin.After(seen) && f.Begin.Before(at)
	})
}

// handled is when the follower had handled the signals that it had got by that time. Until then it does not look at its file.
func (c *check) handled(at time.Time) time.Time {
	open := false
	for _, e := range c.events {
		switch {
		case e.Container != follower:
		case e.Time.After(at.Add(handling)):
			return at
		case e.Event == entry.EventSignal && e.Signal == hup && !e.Time.After(at):
			open = true
		case e.Event == eventLoaded || e.Event == eventNote || e.Event == entry.EventStart:
			if open && e.Time.After(at) {
				return e.Time
			}
			open = false
		}
	}
	return at
}

// broken reports whether such a fault was near the update, on the node: there is one such pod on each.
func (c *check) broken(u *update, kinds ...string) bool {
	return c.brokenBy(u, func(f entry.Fault) bool { return slices.Contains(kinds, f.Kind) })
}

func (c *check) brokenBy(u *update, kind func(entry.Fault) bool) bool {
	end := u.asked.Time
	if u.answered != nil {
		end = u.answered.Time
	}
	return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		after := recovery + 2*c.late
		if f.OfControlPlane() {
			after = reconnect
		}
		return kind(f) && f.On(c.node) && f.Overlaps(u.asked.Time.Add(-after), end.Add(noticed))
	})
}

// down reports whether kubelet says that the application did not run at that time. Where programs take seconds until they have asked for a
// signal, it may have been ended by one.
func (c *check) down(at time.Time) bool {
	p, down := c.Pods[c.pod], false
	if p == nil {
		return false
	}
	for _, w := range p.Statuses {
		for _, s := range w.Pod.Status.ContainerStatuses {
			if s.Name == follower && !w.Received.After(at) {
				down = s.State.Running == nil
			}
		}
	}
	return down
}

// gone reports whether the pod was deleted before the answer: its containers end in any order.
func (c *check) gone(u *update) bool {
	p := c.Pods[c.pod]
	return p != nil && p.Deleted != nil && p.Deleted.Received.Before(u.answered.Time)
}

// unanswering are the faults because of which a sidecar may not answer, or not know yet which files the pod had: it asks the
// API server.
func unanswering(f entry.Fault) bool {
	return f.OfControlPlane() || slices.Contains([]string{entry.KindSidecarKill, entry.KindSidecarLimit, entry.KindSidecarNice, entry.KindNodeLost}, f.Kind)
}
