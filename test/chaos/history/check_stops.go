package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// late is what may lie between the daemon's last look at a request and what it then does, on a busy machine.
const late = 2 * time.Second

// stop is all calls to stop one container.
type stop struct {
	id    string
	calls []Call
}

func (m *model) stopsByID() []stop {
	byID := map[string]int{}
	var stops []stop
	for _, call := range m.Calls {
		if call.Method != "StopContainer" {
			continue
		}
		i, known := byID[call.ContainerID]
		if !known {
			i = len(stops)
			byID[call.ContainerID] = i
			stops = append(stops, stop{id: call.ContainerID})
		}
		stops[i].calls = append(stops[i].calls, call)
	}
	for _, s := range stops {
		slices.SortFunc(s.calls, func(a, b Call) int { return a.Begin.Compare(b.Begin) })
	}
	return stops
}

// order is one container of one request.
type order struct {
	request   *request
	container string
}

// stops checks that each call that changes a container was ordered by a request, and counts.
func (c *checker) stops() {
	stopped := map[order]map[string]Line{}
	for _, s := range c.stopsByID() {
		c.report.Totals.Stops++
		c.report.Totals.Repeated += len(s.calls) - 1
		for _, call := range s.calls {
			orders := c.justify(call)
			if len(orders) == 0 {
				continue
			}
			o := orders[0]
			if stopped[o] == nil {
				stopped[o] = map[string]Line{}
				c.report.Totals.Orders++
			}
			stopped[o][s.id] = call.Line
			c.identity(o, call)
			c.inOrder(o, call)
			c.graceOf(orders, call)
		}
	}
	for o, ids := range stopped {
		if len(ids) < 2 {
			continue
		}
		var proof []Line
		for _, line := range ids {
			proof = append(proof, line)
		}
		c.violate("I1", fmt.Sprintf("request %s container %s", o.request, o.container),
			fmt.Sprintf("%d different containers were stopped for it", len(ids)), proof...)
	}
	for _, call := range c.Calls {
		if call.changes() && call.Method != "StopContainer" && !c.probing(call) {
			c.justify(call)
		}
	}
}

// probing reports whether a command is a probe's.
func (c *checker) probing(call Call) bool {
	known := c.containers[call.ContainerID]
	return call.Method == "ExecSync" && known != nil && slices.ContainsFunc(c.Turns, func(t Turn) bool {
		return t.PodUID == known.podUID && t.Asked == AskedByExec
	})
}

// justify finds the requests that may have ordered a call, the likeliest first. Such a request names the instance as the one it replaces since before the
// call, and had not ended then. An exited instance may be removed without being the recorded one, when kubelet
// would back off from it; it must still be the request's pod and container. Only where no request is known to have
// ordered the call, one is taken that may have: a write of it may have been lost.
func (c *checker) justify(call Call) []order {
	known := c.containers[call.ContainerID]
	var candidates, certain, possible []order
	for _, r := range c.requests {
		for _, spec := range r.spec().Containers {
			o := order{r, spec.Name}
			recorded := r.recorded(spec.Name, call.ContainerID)
			same := known != nil && known.podUID == r.podUID && known.name == spec.Name
			begun := r.created
			if recorded != nil {
				begun = *recorded
			}
			switch {
			case recorded == nil && !same:
				continue
			case !c.open(r, call):
			case (recorded != nil || call.Method == "RemoveContainer") && !begun.Received.After(call.Begin):
				certain = append(certain, o)
			case r.unsureSince(call.Begin) && !recordedLate(recorded, spec.Name, call):
				possible = append(possible, o)
			}
			candidates = append(candidates, o)
		}
	}
	orders := slices.Concat(certain, possible)
	if len(orders) == 0 {
		c.unjustified(call, known, candidates)
		return nil
	}
	found := orders[0]
	if known != nil && (known.podUID != found.request.podUID || known.name != found.container) {
		proof := []Line{call.Line, known.proof}
		if claim := found.request.recorded(found.container, call.ContainerID); claim != nil {
			proof = append(proof, claim.Line)
		}
		c.violate("I2", "request "+found.request.String(), fmt.Sprintf("%s of container %s, which is %s of pod %s",
			call.Method, short(call.ContainerID), known.name, known.podUID), proof...)
	}
	return orders
}

// recordedLate reports whether the record of a stop was written after it, so that no lost write can have held it: a
// daemon that had recorded the stop before says of the container that it is killed.
func recordedLate(recorded *Write, container string, call Call) bool {
	return call.Method == "StopContainer" && call.Code == "OK" && recorded != nil && recorded.Received.After(call.End) &&
		slices.ContainsFunc(recorded.Request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
			return s.Name == container && s.Phase == v1beta1.ContainerRecreateRequestRecreating && !s.IsKilled
		})
}

// open reports whether the request had been created, and not ended, when the call was decided.
func (c *checker) open(r *request, call Call) bool {
	end, ended := r.endedAt()
	return r.created.Received.Before(call.Begin) && (!ended || call.Begin.Before(end.Add(late+c.hookTime(r))))
}

// hookTime is how long a stop may take to reach the runtime after it was decided: its preStop hook comes first, for
// up to the grace period.
func (c *checker) hookTime(r *request) time.Duration {
	if !slices.ContainsFunc(r.spec().Containers, func(s v1beta1.ContainerRecreateRequestContainer) bool { return s.PreStop != nil }) {
		return 0
	}
	return c.grace(r)
}

func (c *checker) grace(r *request) time.Duration {
	seconds := int64(30)
	if p := c.pods[r.podUID]; p != nil && len(p.statuses) > 0 && p.statuses[0].Pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.statuses[0].Pod.Spec.TerminationGracePeriodSeconds
	}
	if strategy := r.spec().Strategy; strategy != nil && strategy.TerminationGracePeriodSeconds != nil {
		seconds = *strategy.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

func (c *checker) unjustified(call Call, known *container, candidates []order) {
	subject := "container " + short(call.ContainerID)
	if known != nil {
		subject = fmt.Sprintf("container %s (%s of pod %s)", short(call.ContainerID), known.name, known.podUID)
	}
	proof := []Line{call.Line}
	if known != nil {
		proof = append(proof, known.proof)
	}
	if len(candidates) == 0 {
		invariant := "I1"
		if known == nil || !slices.ContainsFunc(c.requests, func(r *request) bool { return r.podUID == known.podUID }) {
			invariant = "I2"
		}
		c.violate(invariant, subject, call.Method+" without any request that names it", proof...)
		return
	}
	for _, o := range candidates {
		if recorded := o.request.recorded(o.container, call.ContainerID); recorded != nil {
			proof = append(proof, recorded.Line)
		}
		if terminal := o.request.terminal(); terminal != nil {
			proof = append(proof, terminal.Line)
		}
	}
	c.violate("I1", subject, call.Method+" before its ID was stored in a request, or after that request had ended", proof...)
}

// identity checks that the stopped instance is that of admission.
func (c *checker) identity(o order, call Call) {
	strategy := o.request.spec().Strategy
	if strategy != nil && strategy.ForceRecreate {
		return
	}
	for _, spec := range o.request.spec().Containers {
		if spec.Name != o.container || spec.StatusContext == nil || bareID(spec.StatusContext.ContainerID) == call.ContainerID {
			continue
		}
		c.violate("I1", fmt.Sprintf("request %s container %s", o.request, o.container), fmt.Sprintf(
			"%s was stopped, but at admission it was %s, and the request does not force", short(call.ContainerID),
			short(spec.StatusContext.ContainerID)), o.request.created.Line, call.Line)
	}
}

// wakes checks that the daemon wakes kubelet only for pods with a request under way.
func (c *checker) wakes() {
	for _, w := range c.Writes {
		if w.User != c.options.Daemon || w.Pod == nil || !w.stored() {
			continue
		}
		open := slices.ContainsFunc(c.requests, func(r *request) bool {
			end, ended := r.endedAt()
			return r.podUID == string(w.Pod.UID) && r.created.Received.Before(w.Received) && (!ended || w.Received.Before(end.Add(late)))
		})
		if !open {
			c.violate("I2", fmt.Sprintf("pod %s/%s", w.Namespace, w.Name), "written by the daemon without a request for it", w.Line)
		}
	}
}
