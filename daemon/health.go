package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// probeInterval between calls that show that the runtime answers; each may take probeTimeout.
	probeInterval = 4 * time.Second
	probeTimeout  = 3 * time.Second
	// readyFor is how long one answer of the runtime counts.
	readyFor = 12 * time.Second
)

// readiness is whether the daemon can work now: its caches are filled and the runtime has answered lately.
type readiness struct {
	cachesSynced atomic.Bool
	answered     atomic.Int64 // Unix nanoseconds
}

func (r *readiness) synced() { r.cachesSynced.Store(true) }

// probe asks the runtime for its version now and then.
func (r *readiness) probe(ctx context.Context, runtime Runtime) error {
	for {
		r.ask(ctx, runtime)
		if err := pause(ctx, probeInterval); err != nil {
			return nil //nolint:nilerr // the end of the context is the end of the work
		}
	}
}

func (r *readiness) ask(ctx context.Context, runtime Runtime) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := runtime.Version(ctx); err == nil {
		r.answered.Store(time.Now().UnixNano())
	}
}

func (r *readiness) check(now time.Time) error {
	if !r.cachesSynced.Load() {
		return errors.New("the caches of pods and requests are not filled yet")
	}
	if silent := now.Sub(time.Unix(0, r.answered.Load())); silent > readyFor {
		return fmt.Errorf("the container runtime has not answered for %s", silent.Round(time.Second))
	}
	return nil
}

// handler serves /healthz, which says that the process lives, and /readyz, which says that it can work.
func (r *readiness) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { answer(out, nil) })
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, _ *http.Request) { answer(out, r.check(time.Now())) })
	return mux
}

func answer(out http.ResponseWriter, err error) {
	if err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(out, "ok")
}
