package inpod

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// slow is the interval between checks without any event, in case a change was missed.
	slow = 30 * time.Second
)

// runner runs the engine on the requests of the pod.
type runner struct {
	*engine.Engine
	requests map[types.UID]*crr.Request // of the last list
	changed  chan struct{}              // an action has ended
}

func (p *Plugin) newRunner(store engine.Store, processes Processes, clockOffset func() time.Duration) *runner {
	changed := make(chan struct{}, 1)
	return &runner{changed: changed, Engine: engine.New(engine.Config{
		Store: store, Observer: &observer{own: p.host.Own, processes: processes, observed: p.host.Observed},
		Actor: &actor{
			processes: processes, hooks: hook.New(hook.Config{Addresses: podStatus{}}), guard: p.host.Guard, logger: p.host.Logger,
			warn: func(reason, message string) { p.host.Tell(result.Failed, reason, message) },
		},
		Deleted: func(err error) bool { return errors.Is(err, ownpod.ErrNotFound) },
		Changed: func(identity.Pod) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
		ClockOffset: clockOffset, Options: crr.Options{SignalsOnly: true}, MaxConcurrent: 1, Logger: p.host.Logger,
	})}
}

// list passes the requests that exist now to the engine.
func (r *runner) list(pod identity.Pod, all map[string]*crr.Request) {
	before := r.requests
	r.requests = make(map[types.UID]*crr.Request, len(all))
	for _, request := range all {
		r.Put(pod, request)
		r.requests[request.UID] = request
	}
	for uid, request := range before {
		if r.requests[uid] == nil {
			r.Remove(request)
		}
	}
}

// loop takes a step after every change. Before it returns, it waits for a stop in progress, which ends with ctx.
func (p *Plugin) loop(ctx context.Context, r *runner, news <-chan map[string]*crr.Request) error {
	defer r.Wait()
	changes, end := p.host.Changes()
	defer end()
	retry := firstRetry
	timer := time.NewTimer(slow)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case listed := <-news:
			r.list(p.host.Pod, listed)
		case <-r.changed:
		case <-changes:
		case <-timer.C:
		}
		if p.host.Observed() == nil {
			timer.Reset(slow) // a change follows when the pod is read
			continue
		}
		again, err := r.Next(ctx, p.host.Pod)
		wait := slow
		switch {
		case err != nil && ctx.Err() == nil:
			p.host.Logger.Warn("cannot continue the request, retrying", "err", err)
			wait, retry = retry, min(retry*2, lastRetry)
		case !again.IsZero():
			wait, retry = min(max(time.Until(again.Time), 0), slow), firstRetry
		default:
			retry = firstRetry
		}
		timer.Reset(wait)
	}
}
