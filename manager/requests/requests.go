// Package requests serves the webhooks of ContainerRecreateRequests, drives their lifecycle, and sets the readiness of
// pods that are drained for them. It holds I/O only: what to answer and what to write is decided in package crr.
package requests

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/refit-project/refit/manager/cache"
)

// conflictDelay lets the cache catch up with the write that came before ours.
const conflictDelay = 500 * time.Millisecond

// Config is what the package needs from the manager.
type Config struct {
	Workers  int // requests reconciled at a time
	Nodes    cache.Nodes
	Clock    func() time.Time // the API server's time, in which the times of requests are written
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// Add adds the webhooks and controllers to a manager that has not been started.
func Add(mgr ctrl.Manager, cfg Config) error {
	if err := addAdmission(mgr, cfg); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	if err := addLifecycle(mgr, cfg); err != nil {
		return fmt.Errorf("set up lifecycle: %w", err)
	}
	if err := addReadiness(mgr, cfg); err != nil {
		return fmt.Errorf("set up readiness: %w", err)
	}
	return nil
}
