package hook

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/refit-project/refit/internal/identity"
)

// remembered is how long a run of an instance's hook is remembered: longer than most grace periods, within which another
// part of the daemon may stop the instance too.
const remembered = time.Hour

var errPanic = errors.New("the hook was not run to its end")

// run is the run of one instance's hook, in progress or finished.
type run struct {
	over  chan struct{} // closed when it has finished
	err   error         // valid when it has finished
	ended time.Time
}

// once runs the hook, or waits for the run of another call for the same instance.
func (r *Runner) once(ctx context.Context, call Call) error {
	for {
		of, mine := r.claim(call)
		if mine {
			return r.execute(ctx, call, of)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-of.over:
		}
		if of.err == nil {
			return nil
		}
	}
}

// execute runs the hook for the run of this call. After a panic, which the caller's guard reports, the next call runs the hook again.
func (r *Runner) execute(ctx context.Context, call Call, of *run) (err error) {
	err = errPanic
	defer func() { r.end(call, of, err) }()
	return r.run(ctx, call)
}

// claim returns the run for the call's instance, and whether the caller has to execute it.
func (r *Runner) claim(call Call) (of *run, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.runs, func(_ identity.ContainerID, of *run) bool {
		return !of.ended.IsZero() && time.Since(of.ended) > remembered
	})
	if of, ok := r.runs[call.ID]; ok {
		return of, false
	}
	of = &run{over: make(chan struct{})}
	r.runs[call.ID] = of
	return of, true
}

// Forget lets the next stop of an instance run its hook again. It is for a stop that was cancelled after the hook: the
// container continues, and may be stopped for another reason much later.
func (r *Runner) Forget(id identity.ContainerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, ok := r.runs[id]; ok && !of.ended.IsZero() {
		delete(r.runs, id)
	}
}

func (r *Runner) end(call Call, of *run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of.err, of.ended = err, time.Now()
	if err != nil {
		delete(r.runs, call.ID)
	}
	close(of.over)
}
