package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// shortestGrace is what is left of a grace period at least after a preStop hook, as with kubelet.
const shortestGrace = 2 * time.Second

// graceOf checks that the runtime was given the grace period of one of the requests that may have ordered the stop: with
// a shorter one the application is killed in the middle of its shutdown.
func (c *checker) graceOf(orders []order, call Call) {
	fits := func(o order) bool {
		want := c.grace(o.request)
		if c.hookTime(o.request) == 0 {
			return call.Grace == want
		}
		return call.Grace >= min(want, shortestGrace) && call.Grace <= max(want, shortestGrace)
	}
	if slices.ContainsFunc(orders, fits) {
		return
	}
	r := orders[0].request
	c.violate("grace", "request "+r.String(), fmt.Sprintf("container %s was given %s to end, want %s",
		short(call.ContainerID), call.Grace, c.grace(r)), r.created.Line, call.Line)
}

// inOrder checks that with orderedRecreate a container is stopped only when the one before it has been recreated, or
// given up.
func (c *checker) inOrder(o order, call Call) {
	strategy, containers := o.request.spec().Strategy, o.request.spec().Containers
	if strategy == nil || !strategy.OrderedRecreate {
		return
	}
	n := slices.IndexFunc(containers, func(s v1beta1.ContainerRecreateRequestContainer) bool { return s.Name == o.container })
	if n < 1 || o.request.unsureSince(call.Begin) {
		return
	}
	before := containers[n-1].Name
	done := slices.ContainsFunc(o.request.versions, func(v Write) bool {
		return v.Received.Before(call.Begin) &&
			slices.ContainsFunc(v.Request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
				return s.Name == before && (s.Phase == v1beta1.ContainerRecreateRequestSucceeded || s.Phase == v1beta1.ContainerRecreateRequestFailed)
			})
	})
	if !done {
		c.violate("I6", "request "+o.request.String(), fmt.Sprintf("container %s was stopped before %s was recreated, although the request orders them",
			o.container, before), o.request.created.Line, call.Line)
	}
}

// Bounds of what one request costs the API server and the runtime. They are far above what a run shows, and far below
// what a loop without a pause does.
const (
	writesAtLeast     = 12              // of one request
	writesByContainer = 4               // more for each container
	writesByFault     = 4               // more for each fault meanwhile
	writesInterval    = 2 * time.Second // one more for each while the request is open
	stopsAtLeast      = 6               // of one container
	stopsByFault      = 6
	stopsInterval     = time.Second
)

// volume checks that nothing is done over and over.
func (c *checker) volume() {
	for _, s := range c.stopsByID() {
		first, last := s.calls[0], s.calls[len(s.calls)-1]
		most := stopsAtLeast + stopsByFault*c.faultsIn(first.Begin, last.End) + int(last.End.Sub(first.Begin)/stopsInterval)
		if len(s.calls) > most {
			c.violate("volume", "container "+short(s.id), fmt.Sprintf("stopped %d times, want %d at most", len(s.calls), most), first.Line, last.Line)
		}
	}
	type object struct{ user, namespace, name string }
	writes := map[object][]Write{}
	for _, w := range c.Writes {
		if w.Resource == requestResource && (w.User == c.options.Daemon || w.User == c.options.Manager) {
			o := object{w.User, w.Namespace, w.Name}
			writes[o] = append(writes[o], w)
		}
	}
	for _, r := range c.requests {
		for _, user := range []string{c.options.Daemon, c.options.Manager} {
			all := writes[object{user, r.namespace, r.name}]
			end, ended := r.endedAt()
			if !ended {
				end = c.End
			}
			most := writesAtLeast + writesByContainer*len(r.spec().Containers) + int(end.Sub(r.created.Received)/writesInterval)
			if len(all) > 0 {
				most += writesByFault * c.faultsIn(r.created.Received, all[len(all)-1].Done)
			}
			if len(all) > most {
				c.violate("volume", "request "+r.String(), fmt.Sprintf("written %d times by %s, want %d at most", len(all), user, most),
					all[0].Line, all[len(all)-1].Line)
			}
		}
	}
}

func (c *checker) faultsIn(begin, end time.Time) int {
	found := 0
	for _, f := range c.Faults {
		if f.overlaps(begin, end) {
			found++
		}
	}
	return found
}
