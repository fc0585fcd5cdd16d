// Package requests serves the webhook of ContainerRecreateRequests, drives their lifecycle, and sets the readiness of
// pods that are drained for them. It holds I/O only: what to answer and what to write is decided in package crr.
package requests

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/manager/cache"
)

// conflictDelay lets the cache catch up with the write that came before ours.
const conflictDelay = 500 * time.Millisecond

// Config is what the package needs from the manager.
type Config struct {
	Workers  int    // requests reconciled at a time
	User     string // the manager's own user name, which creates requests on behalf of others
	Nodes    cache.Nodes
	Daemons  cache.Daemons
	Clock    func() time.Time // the API server's time, in which the times of requests are written
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Tracer   trace.Tracer
	Logger   *slog.Logger
}

// AddNothing is Add for a cluster where a kruise-manager has the requests. The webhook allows everything, in case its
// configuration is still there.
func AddNothing(mgr ctrl.Manager, _ Config) error {
	mgr.GetWebhookServer().Register(admissionPath, &admission.Webhook{
		Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Allowed("refit-manager leaves ContainerRecreateRequests to another manager")
		}),
	})
	return nil
}

// Add adds the webhook and controllers to a manager that has not been started.
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
	if err := addRestarts(mgr, cfg); err != nil {
		return fmt.Errorf("set up the count of restarts: %w", err)
	}
	return nil
}
