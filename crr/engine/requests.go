package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/stale"
)

// repeatDelay delays an action that has just succeeded and apparently had no effect.
const repeatDelay = time.Second

// requests holds the active requests, and what this process has done for them. The latter is lost with the process,
// which is harmless: the effects of actions are visible on the node.
type requests struct {
	mu       sync.Mutex
	byUID    map[types.UID]*known
	byPod    map[identity.Pod]map[types.UID]*known
	stopping map[identity.ContainerID]bool
}

// known is what is known about one request.
type known struct {
	pod identity.Pod
	// request is its latest version: from the watch, or our own write until the watch has delivered it.
	request  *crr.Request
	progress progress
}

// progress is what this process knows about a request that is not stored in it.
type progress struct {
	states   map[string]crr.ActionState // by container name
	last     map[string]string          // the key of the last action that succeeded, by container name
	taken    time.Time                  // when this process first worked on the request
	dropsIDs bool                       // the API server has dropped container IDs from its status
}

func newProgress() progress {
	return progress{states: map[string]crr.ActionState{}, last: map[string]string{}}
}

func newRequests() *requests {
	return &requests{byUID: map[types.UID]*known{}, byPod: map[identity.Pod]map[types.UID]*known{}, stopping: map[identity.ContainerID]bool{}}
}

// Put must be called with every version of an active request from the watch, and the pod that it was admitted for. It
// reports whether the version is new: the engine knows its own writes already.
func (r *requests) Put(pod identity.Pod, request *crr.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.byUID[request.UID]
	if before != nil && (before.request.ResourceVersion == request.ResourceVersion || later(before.request, request)) {
		return false
	}
	after := &known{pod: pod, request: request, progress: newProgress()}
	if before != nil {
		after.progress = before.progress
		r.drop(before)
	}
	r.byUID[request.UID] = after
	if r.byPod[pod] == nil {
		r.byPod[pod] = map[types.UID]*known{}
	}
	r.byPod[pod][request.UID] = after
	return true
}

// Remove must be called with every request that has been deleted or is no longer active.
func (r *requests) Remove(request *crr.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.byUID[request.UID]; of != nil {
		r.drop(of)
	}
}

func (r *requests) drop(of *known) {
	delete(r.byUID, of.request.UID)
	delete(r.byPod[of.pod], of.request.UID)
	if len(r.byPod[of.pod]) == 0 {
		delete(r.byPod, of.pod)
	}
}

// ofPod returns the requests of a pod.
func (r *requests) ofPod(pod identity.Pod) []*crr.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*crr.Request, 0, len(r.byPod[pod]))
	for _, of := range r.byPod[pod] {
		all = append(all, of.request)
	}
	return all
}

// Pods returns the pods that have active requests.
func (r *requests) Pods() []identity.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.byPod))
}

// HasRequests reports whether a pod has active requests.
func (r *requests) HasRequests(pod identity.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byPod[pod]) > 0
}

// get returns the current version of a request, or nil if it has been deleted or is no longer active.
func (r *requests) get(request types.UID) *crr.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.byUID[request]; of != nil {
		return of.request
	}
	return nil
}

// wrote stores our own write.
func (r *requests) wrote(stored *crr.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.byUID[stored.UID]; of != nil && !later(of.request, stored) {
		of.request = stored
	}
}

// later reports whether a is certainly a later version of a request than b.
func later(a, b *crr.Request) bool { return stale.Older(b.ResourceVersion, a.ResourceVersion) }

// take returns the progress of a request that is worked on now, and the instances that are being stopped, as copies.
func (r *requests) take(request types.UID, now time.Time) (progress, map[identity.ContainerID]bool) {
	out := newProgress()
	r.with(request, func(p *progress) {
		if p.taken.IsZero() {
			p.taken = now
		}
		out = *p
		out.states, out.last = maps.Clone(p.states), maps.Clone(p.last)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return out, maps.Clone(r.stopping)
}

// with calls change with the progress of a request, unless the request is gone.
func (r *requests) with(request types.UID, change func(*progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of := r.byUID[request]; of != nil {
		change(&of.progress)
	}
}

// finish removes the progress of a request that has ended.
func (r *requests) finish(request types.UID) {
	r.with(request, func(p *progress) { *p = newProgress() })
}

// droppedIDs records that the API server has dropped container IDs from the status of a request.
func (r *requests) droppedIDs(request types.UID) {
	r.with(request, func(p *progress) { p.dropsIDs = true })
}

// Stopping reports whether a stop of this instance is in progress, for any request.
func (r *requests) Stopping(id identity.ContainerID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping[id]
}

// actionBegins records that an action is in progress.
func (r *requests) actionBegins(action Action) {
	r.with(action.Request.UID, func(p *progress) {
		state := p.states[action.Container()]
		state.Running = true
		p.states[action.Container()] = state
	})
	if id := action.stops(); !id.IsZero() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stopping[id] = true
	}
}

// actionEnded records the result of an action. key is empty if the action did not begin.
func (r *requests) actionEnded(action Action, result Result, key string) {
	r.with(action.Request.UID, func(p *progress) { p.end(action.Container(), result, key) })
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stopping, action.stops())
}

func (p *progress) end(container string, result Result, key string) {
	state := p.states[container]
	state.Running, state.Done, state.Err, state.Transient, state.Unbegun = false, time.Now(), "", result.Transient, result.Unbegun
	state.Failures++
	if result.Err != nil {
		state.Err, key = result.Err.Error(), ""
	} else {
		state.Failures = 0
	}
	if result.Touched {
		state.Touches++
	}
	p.states[container], p.last[container] = state, key
}

// repeatDelay returns how long an action has to wait because the same action has just succeeded. If it is ordered
// again, the runtime has reported success without an effect.
func (p progress) repeatDelay(action Action, now time.Time) time.Duration {
	key := action.key()
	if key == "" || p.last[action.Container()] != key {
		return 0
	}
	return p.states[action.Container()].Done.Add(repeatDelay).Sub(now)
}
