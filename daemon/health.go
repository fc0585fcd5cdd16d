package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/wait"
)

const (
	// runtimeCheckInterval is the time between calls that check the runtime; each may take runtimeCheckTimeout.
	runtimeCheckInterval = 4 * time.Second
	runtimeCheckTimeout  = 3 * time.Second
	// maxRuntimeSilence is the maximum age of the runtime's last response.
	maxRuntimeSilence = 12 * time.Second
)

// readiness reports whether the daemon can work now: its caches are filled and the runtime has responded recently.
type readiness struct {
	cachesSynced atomic.Bool
	answered     atomic.Int64 // Unix nanoseconds
}

func (r *readiness) synced() { r.cachesSynced.Store(true) }

// versioner answers a cheap call; *cri.Client has it.
type versioner interface {
	Version(ctx context.Context) (cri.Version, error)
}

// checkRuntime calls the runtime at intervals until ctx ends.
func (r *readiness) checkRuntime(ctx context.Context, runtime versioner) error {
	for {
		r.callRuntime(ctx, runtime)
		if err := wait.For(ctx, runtimeCheckInterval); err != nil {
			return nil //nolint:nilerr // the end of the context is the end of the work
		}
	}
}

func (r *readiness) callRuntime(ctx context.Context, runtime versioner) {
	ctx, cancel := context.WithTimeout(ctx, runtimeCheckTimeout)
	defer cancel()
	if _, err := runtime.Version(ctx); err == nil {
		r.answered.Store(time.Now().UnixNano())
	}
}

func (r *readiness) check(now time.Time) error {
	if !r.cachesSynced.Load() {
		return errors.New("the caches of pods and requests are not filled yet")
	}
	if silent := now.Sub(time.Unix(0, r.answered.Load())); silent > maxRuntimeSilence {
		return fmt.Errorf("the container runtime has not answered for %s", silent.Round(time.Second))
	}
	return nil
}

// handler serves /healthz, which returns 200 while the process runs, and /readyz, which returns 200 while it can work.
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
