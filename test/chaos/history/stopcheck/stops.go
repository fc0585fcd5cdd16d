// Package stopcheck checks that each stop was ordered by a request, was within its bounds, and that containers saw no
// other: the invariants I1 and I2, the order of containers (I6), and grace periods.
package stopcheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// late is what may lie between the daemon's last look at a request and what it then does, on a busy machine.
const late = 2 * time.Second

// order is one container of one request.
type order struct {
	request   *model.Request
	container string
}

// stops checks that each call that changes a container was ordered by a request, and counts.
func (c check) stops() {
	stopped := map[order]map[string]entry.Line{}
	for _, s := range c.StopsByID() {
		c.Report.Totals.Stops++
		c.Report.Totals.Repeated += len(s.Calls) - 1
		for _, call := range s.Calls {
			orders := c.justify(call)
			if len(orders) == 0 {
				continue
			}
			o := orders[0]
			if stopped[o] == nil {
				stopped[o] = map[string]entry.Line{}
				c.Report.Totals.Orders++
			}
			stopped[o][s.ID] = call.Line
			c.identity(o, call)
			c.inOrder(o, call)
			c.graceOf(orders, call)
		}
	}
	for o, ids := range stopped {
		if len(ids) < 2 {
			continue
		}
		var proof []entry.Line
		for _, line := range ids {
			proof = append(proof, line)
		}
		c.Violate("I1", fmt.Sprintf("request %s container %s", o.request, o.container),
			fmt.Sprintf("%d different containers were stopped for it", len(ids)), proof...)
	}
	for _, call := range c.Calls {
		if call.Changes() && call.Method != "StopContainer" && !c.probing(call) {
			c.justify(call)
		}
	}
}

// probing reports whether a command is a probe's.
func (c check) probing(call entry.Call) bool {
	known := c.Containers[call.ContainerID]
	return call.Method == "ExecSync" && known != nil && slices.ContainsFunc(c.Turns, func(t entry.Turn) bool {
		return t.PodUID == known.PodUID && t.Asked == entry.AskedByExec
	})
}

// justify finds the requests that may have ordered a call, the likeliest first. Such a request names the instance as the one it replaces since before the
// call, and had not ended then. An exited instance may be removed without being the recorded one, when kubelet
// would back off from it; it must still be the request's pod and container. Only where no request is known to have
// ordered the call, one is taken that may have: a write of it may have been lost.
func (c check) justify(call entry.Call) []order {
	known := c.Containers[call.ContainerID]
	var candidates, certain, likely, possible []order
	for _, r := range c.Requests {
		for _, spec := range r.Spec().Containers {
			o := order{r, spec.Name}
			recorded := r.Recorded(spec.Name, call.ContainerID)
			same := known != nil && known.PodUID == r.PodUID && known.Name == spec.Name
			begun := r.Created
			if recorded != nil {
				begun = *recorded
			}
			switch {
			case recorded == nil && !same:
				continue
			case !c.open(r, call):
			case (recorded != nil || call.Method == "RemoveContainer") && !begun.Received.After(call.Begin):
				certain = append(certain, o)
			case r.UnsureSince(call.Begin) && !recordedLate(recorded, spec.Name, call) && !unrecorded(r, spec.Name, call):
				if recorded != nil { // likelier than one that has never named the instance
					likely = append(likely, o)
				} else {
					possible = append(possible, o)
				}
			}
			candidates = append(candidates, o)
		}
	}
	orders := slices.Concat(certain, likely, possible)
	if len(orders) == 0 {
		c.unjustified(call, known, candidates)
		return nil
	}
	found := orders[0]
	if known != nil && (known.PodUID != found.request.PodUID || known.Name != found.container) {
		proof := []entry.Line{call.Line, known.Proof}
		if claim := found.request.Recorded(found.container, call.ContainerID); claim != nil {
			proof = append(proof, claim.Line)
		}
		c.Violate("I2", "request "+found.request.String(), fmt.Sprintf("%s of container %s, which is %s of pod %s",
			call.Method, entry.Short(call.ContainerID), known.Name, known.PodUID), proof...)
	}
	return orders
}

// recordedLate reports whether the record of a stop was written after it, so that no lost write can have held it: a
// daemon that had recorded the stop before says of the container that it is killed.
func recordedLate(recorded *entry.Write, container string, call entry.Call) bool {
	return call.Method == "StopContainer" && call.Code == "OK" && recorded != nil && recorded.Received.After(call.End) &&
		slices.ContainsFunc(recorded.Request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
			return s.Name == container && s.Phase == v1beta1.ContainerRecreateRequestRecreating && !s.IsKilled
		})
}

// unrecorded reports whether a version of the request that was stored after the call says nothing of the instance that was
// stopped by it: a record whose line is lost would be in it.
func unrecorded(r *model.Request, container string, call entry.Call) bool {
	return call.Method != "RemoveContainer" && r.Recorded(container, call.ContainerID) == nil &&
		slices.ContainsFunc(r.Versions, func(v entry.Write) bool { return v.Received.After(call.Begin) })
}

// open reports whether the request had been created, and not ended, when the call was decided.
func (c check) open(r *model.Request, call entry.Call) bool {
	end, ended := r.EndedAt()
	return r.Created.Received.Before(call.Begin) &&
		(!ended || call.Begin.Before(end.Add(late+c.HookTime(r))) || call.Method == "RemoveContainer" && c.afterStop(r, end, call))
}

// afterStop reports whether a stop for the request was under way at its end, and has returned just before a removal. The daemon
// then removes what kubelet would back off from: the instance that was stopped, and exited ones of the same container.
func (c check) afterStop(r *model.Request, end time.Time, removal entry.Call) bool {
	known := c.container(removal.ContainerID)
	return slices.ContainsFunc(c.Calls, func(stop entry.Call) bool {
		if stop.Method != "StopContainer" || !stop.Begin.Before(end) || !stop.End.After(end) ||
			!stop.End.Before(removal.Begin) || !removal.Begin.Before(stop.End.Add(late+c.HookTime(r))) {
			return false
		}
		return stop.ContainerID == removal.ContainerID ||
			known != nil && known.PodUID == r.PodUID && r.Recorded(known.Name, stop.ContainerID) != nil
	})
}

func (c check) unjustified(call entry.Call, known *model.Container, candidates []order) {
	subject := "container " + entry.Short(call.ContainerID)
	if known != nil {
		subject = fmt.Sprintf("container %s (%s of pod %s)", entry.Short(call.ContainerID), known.Name, known.PodUID)
	}
	proof := []entry.Line{call.Line}
	if known != nil {
		proof = append(proof, known.Proof)
	}
	if len(candidates) == 0 {
		invariant := "I1"
		if known == nil || !slices.ContainsFunc(c.Requests, func(r *model.Request) bool { return r.PodUID == known.PodUID }) {
			invariant = "I2"
		}
		c.Violate(invariant, subject, call.Method+" without any request that names it", proof...)
		return
	}
	for _, o := range candidates {
		if recorded := o.request.Recorded(o.container, call.ContainerID); recorded != nil {
			proof = append(proof, recorded.Line)
		}
		if terminal := o.request.Terminal(); terminal != nil {
			proof = append(proof, terminal.Line)
		}
	}
	c.Violate("I1", subject, call.Method+" before its ID was stored in a request, or after that request had ended", proof...)
}

// identity checks that the stopped instance is the instance at admission.
func (c check) identity(o order, call entry.Call) {
	strategy := o.request.Spec().Strategy
	if strategy != nil && strategy.ForceRecreate {
		return
	}
	for _, spec := range o.request.Spec().Containers {
		if spec.Name != o.container || spec.StatusContext == nil || entry.BareID(spec.StatusContext.ContainerID) == call.ContainerID {
			continue
		}
		c.Violate("I1", fmt.Sprintf("request %s container %s", o.request, o.container), fmt.Sprintf(
			"%s was stopped, but at admission it was %s, and the request does not force", entry.Short(call.ContainerID),
			entry.Short(spec.StatusContext.ContainerID)), o.request.Created.Line, call.Line)
	}
}

// wakes checks that the daemon wakes kubelet only for pods with a request under way. What it reports of the containers of
// pods that are updated in place wakes nobody.
func (c check) wakes() {
	for _, w := range c.Writes {
		facts := slices.Equal(w.Annotations, []string{v1beta1.AnnotationRuntimeContainersMeta})
		if w.User != c.Options.Daemon || w.Pod == nil || !w.Stored() || facts {
			continue
		}
		open := slices.ContainsFunc(c.Requests, func(r *model.Request) bool {
			end, ended := r.EndedAt()
			return r.PodUID == string(w.Pod.UID) && r.Created.Received.Before(w.Received) && (!ended || w.Received.Before(end.Add(late)))
		})
		if !open {
			c.Violate("I2", fmt.Sprintf("pod %s/%s", w.Namespace, w.Name), "written by the daemon without a request for it", w.Line)
		}
	}
}
