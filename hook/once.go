package hook

import (
	"context"
	"maps"
	"time"

	"github.com/refit-project/refit/identity"
)

// remembered is for how long it is known that the hook of an instance has been run: longer than most grace periods, within
// which another part of the daemon may stop the instance too.
const remembered = time.Hour

// run is the hook of one instance, under way or over.
type run struct {
	over  chan struct{} // closed when it is
	err   error         // once it is over
	ended time.Time
}

// once runs the hook, or waits for the run of another call for the same instance.
func (r *Runner) once(ctx context.Context, call Call) error {
	for {
		of, mine := r.claim(call)
		if mine {
			err := r.run(ctx, call)
			r.end(call, of, err)
			return err
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

// claim returns the run of the call's instance, and whether it is the caller's to carry out.
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

// Forget has the hook of an instance run again by whoever stops it next. It is for a stop that was given up after the hook, as
// the container goes on, and may be stopped for another reason much later.
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
