// Package requestcheck checks what became of requests: that their ends are final, true and in time (I3, I4, I5), in order
// (I6), and that those that failed had a reason to.
package requestcheck

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// terminal checks I3.
func (c check) terminal() {
	for _, r := range c.Requests {
		end := r.Terminal()
		if end == nil {
			continue
		}
		for _, v := range r.Versions {
			if entry.Revision(v.Request.ResourceVersion) <= entry.Revision(end.Request.ResourceVersion) ||
				sameStatus(v.Request.Status, end.Request.Status) {
				continue
			}
			c.Violate("I3", "request "+r.String(), "its status changed after it had ended", end.Line, v.Line)
			break
		}
	}
}

// sameStatus compares statuses. Under the CRD of OpenKruise the ID of a container is in an annotation, which may be written
// after the status.
func sameStatus(a, b v1beta1.ContainerRecreateRequestStatus) bool {
	if len(a.ContainerRecreateStates) != len(b.ContainerRecreateStates) {
		return false
	}
	a, b = *a.DeepCopy(), *b.DeepCopy()
	for i := range a.ContainerRecreateStates {
		if first, second := &a.ContainerRecreateStates[i], &b.ContainerRecreateStates[i]; first.ContainerID == "" || second.ContainerID == "" {
			first.ContainerID, second.ContainerID = "", ""
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// success checks I4.
func (c check) success() {
	for _, r := range c.Requests {
		end := r.Terminal()
		if end == nil {
			continue
		}
		states := end.Request.Status.ContainerRecreateStates
		if end.Request.Status.Message == "" {
			for _, spec := range r.Spec().Containers {
				if !slices.ContainsFunc(states, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
					return s.Name == spec.Name && s.Phase == v1beta1.ContainerRecreateRequestSucceeded
				}) {
					c.Violate("I4", "request "+r.String(), "succeeded although container "+spec.Name+" did not", end.Line)
				}
			}
		}
		for _, state := range states {
			if state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
				c.recreated(r, state, r.Succeeded(state.Name))
			}
		}
	}
}

// believed is how old the daemon's picture of the pod may be when its verdict arrives.
const believed = 5 * time.Second

func (c check) recreated(r *model.Request, state v1beta1.ContainerRecreateRequestRecreateState, success entry.Write) {
	p := c.Pods[r.PodUID]
	subject := fmt.Sprintf("request %s container %s", r, state.Name)
	if p == nil {
		c.Violate("I4", subject, "succeeded, but there is no such pod", success.Line)
		return
	}
	up := time.Duration(0)
	if strategy := r.Spec().Strategy; strategy != nil {
		up = time.Duration(strategy.MinStartedSeconds) * time.Second
	}
	since := r.StoredSince(success)
	c.newInstance(p, subject, state, success, since, up)
	var seen []entry.Line
	for n, w := range p.Statuses {
		superseded := n+1 < len(p.Statuses) && p.Statuses[n+1].Received.Before(since.Add(-believed))
		if w.Received.After(success.Done) || superseded {
			continue
		}
		for _, status := range slices.Concat(w.Pod.Status.ContainerStatuses, w.Pod.Status.InitContainerStatuses) {
			if status.Name != state.Name {
				continue
			}
			if model.Replaced(status, state.ContainerID) {
				return
			}
			seen = append(seen, w.Line)
		}
	}
	// Kubelet's report may be a write whose line is lost, if it was not superseded before the daemon last looked.
	var last time.Time
	for _, w := range p.Statuses {
		if w.Received.Before(since.Add(-believed)) {
			last = w.Received
		}
	}
	unsure := slices.ContainsFunc(p.Unsure, func(w entry.Write) bool {
		return !w.Done.Before(last) && w.Received.Before(success.Received)
	})
	if !unsure {
		c.Violate("I4", subject, "succeeded, but kubelet reported no other container, running and ready", append(seen, success.Line)...)
	}
}

// newInstance looks in the application's log for what ran at the time of the verdict, which was stored at since at the
// earliest. That is one of two when a start or a stop lies beside it.
func (c check) newInstance(p *model.Pod, subject string, state v1beta1.ContainerRecreateRequestRecreateState, success entry.Write, since time.Time, up time.Duration) {
	instances := p.Instances[state.Name]
	if len(instances) == 0 { // a container that keeps no log
		return
	}
	what, proof := "succeeded, but the application was not running", []entry.Line{success.Line}
	for _, i := range instances {
		if i.Start.Time.After(success.Done.Add(verdict.Noticed)) || i.End(c.End).Before(since.Add(-believed)) {
			continue
		}
		proof = []entry.Line{i.Start.Line, success.Line}
		if stop := c.FirstStop(state.ContainerID); stop != nil && i.Start.Time.Before(stop.Begin.Add(-verdict.Noticed)) {
			what, proof = "succeeded, but the application that ran was the one to be replaced", append(proof, stop.Line)
			continue
		}
		ran := success.Done.Sub(i.Start.Time)
		if ran >= up-verdict.Noticed {
			return
		}
		what = fmt.Sprintf("succeeded after %s, want minStartedSeconds %s", ran.Round(time.Millisecond), up)
	}
	if !c.neverSeen(p, state, success, since) && !c.wroteLate(p, state, success, up) && !c.endedBefore(p, state, success, up) {
		c.Violate("I4", subject, what, proof...)
	}
}

// firstLine is what a program may take, on a machine whose processors are all busy, from the start of its process to the first line of its log.
// It is more in a run in which programs were later than that.
const firstLine = 3 * time.Second

// wroteLate reports whether kubelet says that the runtime had started another container early enough, and its application wrote the
// first line of its log a little later.
func (c check) wroteLate(p *model.Pod, state v1beta1.ContainerRecreateRequestRecreateState, success entry.Write, up time.Duration) bool {
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			if s.Name != state.Name || s.State.Running == nil || !model.Replaced(s, state.ContainerID) {
				return false
			}
			started := s.State.Running.StartedAt.Time // in whole seconds
			return !started.Add(up).After(success.Done.Add(verdict.Noticed)) && slices.ContainsFunc(p.Instances[state.Name], func(i *model.Instance) bool {
				return !i.Start.Time.Before(started) && i.Start.Time.Before(started.Add(time.Second+max(firstLine, 4*c.late)))
			})
		})
	})
}

// endedBefore reports whether kubelet says that the runtime had started another container early enough, and this was stopped again before its
// application had the time that the programs of this run took to the first line of their logs.
func (c check) endedBefore(p *model.Pod, state v1beta1.ContainerRecreateRequestRecreateState, success entry.Write, up time.Duration) bool {
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return !w.Received.After(success.Done) && slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			if s.Name != state.Name || s.State.Running == nil || !model.Replaced(s, state.ContainerID) {
				return false
			}
			started, stop := s.State.Running.StartedAt.Time, c.FirstStop(s.ContainerID)
			return !started.Add(up).After(success.Done.Add(verdict.Noticed)) && stop != nil && stop.Begin.Before(started.Add(4*c.late))
		})
	})
}

// neverSeen reports whether the container that kubelet called ready at the time of the verdict was ended by a restart of its
// runtime before its program came to the first line of its log.
func (c check) neverSeen(p *model.Pod, state v1beta1.ContainerRecreateRequestRecreateState, success entry.Write, since time.Time) bool {
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return !w.Received.After(success.Done) && !w.Received.Before(since.Add(-believed)) &&
			slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.Name == state.Name && model.Replaced(s, state.ContainerID) && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
					begun := s.State.Running.StartedAt.Time
					return f.Kind == entry.KindRuntimeRestart && f.On(p.Node()) && f.Overlaps(begun.Add(-verdict.Noticed), begun.Add(2*verdict.Noticed))
				})
			})
	})
}

// endsLate is how long after its deadline a request may end.
const endsLate = 5 * time.Second

// ends checks I5.
func (c check) ends() {
	turn := map[string]time.Time{} // by pod UID: when the next request's turn came
	impeding := slices.DeleteFunc(c.untilWritten(c.Faults), entry.Fault.OfManagers)
	for _, r := range c.Requests {
		end, ended := r.EndedAt()
		if !ended {
			end = c.End
		}
		if lost := c.lostEnd(r); lost != nil && (!ended || lost.Received.Before(end)) {
			end, ended = lost.Received, true
		}
		begin := r.Created.Received
		if turn[r.PodUID].After(begin) {
			begin = turn[r.PodUID]
		}
		// Where the audit line of its end may be lost, the request itself says when that was.
		if terminal := r.Terminal(); terminal != nil && terminal.Request.Status.CompletionTime != nil && r.UnsureSince(terminal.Received) &&
			terminal.Request.Status.CompletionTime.Time.Before(end) {
			end = terminal.Request.Status.CompletionTime.Time
		}
		if end.After(turn[r.PodUID]) {
			turn[r.PodUID] = end
		}
		faults := append(c.slowWrites(r), impeding...)
		last := r.Versions[len(r.Versions)-1].Line
		if terminal := r.Terminal(); terminal != nil {
			last = terminal.Line
			if terminal.User == c.Options.Manager {
				faults = append(faults, lostManagers(impeding)...)
			}
		}
		if seconds := r.Spec().ActiveDeadlineSeconds; seconds != nil {
			deadline := r.Created.Request.CreationTimestamp.Add(time.Duration(*seconds) * time.Second)
			if over := entry.Unimpeded(faults, r.Node(), deadline, end); over > endsLate {
				c.Violate("I5", "request "+r.String(), fmt.Sprintf("not ended %s after its deadline, not counting faults",
					over.Round(time.Millisecond)), r.Created.Line, last)
				continue
			}
		}
		if took := entry.Unimpeded(append(faults, c.slowReports(r)...), r.Node(), begin, end); took > c.patience(r) {
			c.Violate("I5", "request "+r.String(), fmt.Sprintf("not ended %s after its turn had come, not counting faults; it asks for %s at most",
				took.Round(time.Millisecond), c.patience(r)), r.Created.Line, last)
		} else if !ended {
			c.Violate("I5", "request "+r.String(), "not ended at the end of the run", r.Created.Line, last)
		}
	}
}

// lostManagers are the losses of nodes, as faults of every node: the managers may have run on a node that was lost, and a request
// for a node without a daemon is ended by a manager.
func lostManagers(faults []entry.Fault) []entry.Fault {
	var lost []entry.Fault
	for _, f := range faults {
		if f.Kind == entry.KindNodeLost {
			f.Node = ""
			lost = append(lost, f)
		}
	}
	return lost
}

// order checks I6. Which of two requests is older is certain only when one was created before the other was sent.
func (c check) order() {
	for n, later := range c.Requests {
		begun := later.Begun()
		if begun == nil || later.Created.Verb != "create" {
			continue
		}
		for _, earlier := range c.Requests[:n] {
			if earlier.PodUID != later.PodUID || earlier.Created.Verb != "create" || !earlier.Created.Done.Before(later.Created.Received) {
				continue
			}
			if earlier.Deleted != nil && earlier.Deleted.Received.Before(begun.Done) {
				continue
			}
			end := earlier.Terminal()
			if end != nil && entry.Revision(end.Request.ResourceVersion) < entry.Revision(begun.Request.ResourceVersion) {
				continue
			}
			if earlier.UnsureBefore(begun) {
				continue
			}
			proof := []entry.Line{earlier.Created.Line, later.Created.Line, begun.Line}
			if end != nil {
				proof = append(proof, end.Line)
			}
			c.Violate("I6", "request "+later.String(), "begun before the older request "+earlier.String()+" of the same pod had ended", proof...)
		}
	}
}
