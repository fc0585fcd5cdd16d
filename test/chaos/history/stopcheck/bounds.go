package stopcheck

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

const (
	// shortestGrace is what is left of a grace period at least after a preStop hook, as with kubelet.
	shortestGrace = 2 * time.Second
	// shortestRest is what a stop that is tried again has at least, so that its stop signal reaches the container.
	shortestRest = time.Second
)

// graceOf checks that the runtime was given the grace period of one of the requests that may have ordered the stop, or what was
// left of it: with a shorter one the application is killed in the middle of its shutdown.
func (c check) graceOf(orders []order, call entry.Call) {
	fits := func(o order) bool {
		want := c.Grace(o.request)
		if c.HookTime(o.request) > 0 {
			return call.Grace >= min(want, shortestGrace) && call.Grace <= max(want, shortestGrace)
		}
		return call.Grace <= want && call.Grace >= max(min(want, shortestRest), want-spent(o, call))
	}
	if slices.ContainsFunc(orders, fits) {
		return
	}
	r := orders[0].request
	c.Violate("grace", "request "+r.String(), fmt.Sprintf("container %s was given %s to end, want %s",
		entry.Short(call.ContainerID), call.Grace, c.Grace(r)), r.Created.Line, call.Line)
}

// spent is how much of the grace period had passed when the stop was tried again, by a daemon that found it begun: what the
// request records, and a second for the time between the decision and the call.
func spent(o order, call entry.Call) time.Duration {
	var began time.Time
	for _, v := range o.request.Versions {
		for _, state := range v.Request.Status.ContainerRecreateStates {
			if state.Name == o.container && state.StopBegan != nil && state.StopBegan.Before(&metav1.MicroTime{Time: call.Begin}) {
				began = state.StopBegan.Time
			}
		}
	}
	passed := call.Begin.Sub(began)
	if began.IsZero() || passed < time.Second {
		return 0
	}
	return passed + time.Second
}

// inOrder checks that with orderedRecreate a container is stopped only when the one before it has been recreated, or
// given up.
func (c check) inOrder(o order, call entry.Call) {
	strategy, containers := o.request.Spec().Strategy, o.request.Spec().Containers
	if strategy == nil || !strategy.OrderedRecreate {
		return
	}
	n := slices.IndexFunc(containers, func(s v1beta1.ContainerRecreateRequestContainer) bool { return s.Name == o.container })
	if n < 1 || o.request.UnsureSince(call.Begin) {
		return
	}
	before := containers[n-1].Name
	done := slices.ContainsFunc(o.request.Versions, func(v entry.Write) bool {
		return v.Received.Before(call.Begin) &&
			slices.ContainsFunc(v.Request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
				return s.Name == before && (s.Phase == v1beta1.ContainerRecreateRequestSucceeded || s.Phase == v1beta1.ContainerRecreateRequestFailed)
			})
	})
	if !done {
		c.Violate("I6", "request "+o.request.String(), fmt.Sprintf("container %s was stopped before %s was recreated, although the request orders them",
			o.container, before), o.request.Created.Line, call.Line)
	}
}
