// Package control serves the webhook of ContainerRecreateRequests, manages their lifecycle, and sets the readiness of
// pods that are drained for them. It adds the readiness gate that draining needs, and requests the end of the sidecars
// of Jobs. It performs I/O only: package crr and its subpackages decide what to answer and what to write.
package control

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

	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// nextLook is the delay before a pod is checked again if another write may be due.
const nextLook = 500 * time.Millisecond

// Config holds what the package needs from the manager.
type Config struct {
	Workers int    // number of requests reconciled concurrently
	User    string // the manager's own user name, which creates requests on behalf of others
	Nodes   cache.Nodes
	Daemons cache.Daemons
	// ReadinessGates enables the webhook that adds the readiness gate KruisePodReady to the pods selected by its
	// configuration.
	ReadinessGates bool
	Clock          func() time.Time // the API server's time; the times in requests are written in it
	Recorder       events.EventRecorder
	Metrics        prometheus.Registerer
	Guard          *guard.Guard // catches panics while one object is handled
	Tracer         trace.Tracer
	Logger         *slog.Logger
}

// AddNothing replaces Add in a cluster where a kruise-manager handles the requests. The webhook allows everything, in
// case its configuration still exists. No readiness gate is added, because nothing here would open it.
func AddNothing(mgr ctrl.Manager, cfg Config) error {
	cfg.ReadinessGates = false
	addGate(mgr, cfg)
	mgr.GetWebhookServer().Register(admissionPath, guardcontrol.CheckReviews(&admission.Webhook{
		Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Allowed("refit-manager leaves ContainerRecreateRequests to another manager")
		}),
	}))
	return nil
}

// Add adds the webhook and the controllers to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	if err := addAdmission(mgr, cfg); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	addGate(mgr, cfg)
	if err := addLifecycle(mgr, cfg); err != nil {
		return fmt.Errorf("set up lifecycle: %w", err)
	}
	if err := addReadiness(mgr, cfg); err != nil {
		return fmt.Errorf("set up readiness: %w", err)
	}
	if err := addJobEnds(mgr, cfg); err != nil {
		return fmt.Errorf("set up the end of sidecars of Jobs: %w", err)
	}
	if err := addRestarts(mgr, cfg); err != nil {
		return fmt.Errorf("set up the count of restarts: %w", err)
	}
	return nil
}
