package node

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// acts records which actions are in progress and how earlier ones ended. It is lost with the process, which is
// harmless: the effects of actions are visible on the node.
type acts struct {
	mu       sync.Mutex
	requests map[types.UID]map[string]crr.ActionState // by request UID, then by container name
	orders   map[types.UID]map[string]string          // the last action that succeeded, with the same keys
	stopping map[identity.ContainerID]bool
	taken    map[types.UID]time.Time // when this process first saw the request
}

func newActs() *acts {
	return &acts{
		requests: map[types.UID]map[string]crr.ActionState{}, orders: map[types.UID]map[string]string{},
		stopping: map[identity.ContainerID]bool{}, taken: map[types.UID]time.Time{},
	}
}

// of returns a copy of the actions of a request.
func (a *acts) of(request types.UID) map[string]crr.ActionState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests[request] == nil {
		return map[string]crr.ActionState{}
	}
	return maps.Clone(a.requests[request])
}

// busy reports whether a stop of this instance is in progress, for any request.
func (a *acts) busy(id identity.ContainerID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopping[id]
}

// repeatDelay returns how long an action has to wait because the same action has just succeeded. If it is ordered
// again, the runtime has reported success without an effect.
func (a *acts) repeatDelay(request types.UID, container, order string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if order == "" || a.orders[request][container] != order {
		return 0
	}
	return a.requests[request][container].Done.Add(repeatDelay).Sub(now)
}

// begin records that an action is in progress. id is the instance that it stops, or zero for a start.
func (a *acts) begin(request types.UID, container string, id identity.ContainerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests[request] == nil {
		a.requests[request], a.orders[request] = map[string]crr.ActionState{}, map[string]string{}
	}
	act := a.requests[request][container]
	act.Running = true
	a.requests[request][container] = act
	if !id.IsZero() {
		a.stopping[id] = true
	}
}

// end records the outcome of an action, unless its request has been forgotten meanwhile.
func (a *acts) end(request types.UID, container string, id identity.ContainerID, outcome outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.stopping, id)
	if a.requests[request] == nil {
		return
	}
	act := a.requests[request][container]
	act.Running, act.Done, act.Err, act.Transient, act.Unbegun = false, time.Now(), "", outcome.transient, outcome.unbegun
	if outcome.err != nil {
		act.Err = outcome.err.Error()
		act.Failures++
		delete(a.orders[request], container)
	} else {
		act.Failures = 0
		a.orders[request][container] = outcome.order
	}
	if outcome.nudged {
		act.Touches++
	}
	a.requests[request][container] = act
}

// outcome is the result of one action.
type outcome struct {
	err       error
	transient bool // the runtime may become available again
	unbegun   bool // the stop signal cannot have been sent
	nudged    bool // the pod was touched so that kubelet syncs it
	order     string
}

// forget removes a request that has ended.
func (a *acts) forget(request types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.requests, request)
	delete(a.orders, request)
	delete(a.taken, request)
}

// takenAt returns when it was first called for the request.
func (a *acts) takenAt(request types.UID, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.taken[request]; !ok {
		a.taken[request] = now
	}
	return a.taken[request]
}

// keepOnly removes all requests except the given ones.
func (a *acts) keepOnly(requests map[types.UID]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gone := func(request types.UID) bool { return !requests[request] }
	maps.DeleteFunc(a.requests, func(request types.UID, _ map[string]crr.ActionState) bool { return gone(request) })
	maps.DeleteFunc(a.orders, func(request types.UID, _ map[string]string) bool { return gone(request) })
	maps.DeleteFunc(a.taken, func(request types.UID, _ time.Time) bool { return gone(request) })
}
