package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/refit-project/refit/internal/httpserver"
)

// health serves /healthz, which returns 200 while the process runs, and /readyz, which returns 200 while the webhooks, if
// any, can be called. It serves from the start of the program, so that kubelet does not kill a program that waits for the
// API server.
type health struct {
	checks atomic.Pointer[[]readinessCheck] // nil until the API server has responded
}

// readinessCheck is one of the checks of /readyz.
type readinessCheck struct {
	name  string
	check healthz.Checker
}

// readinessChecks returns the checks for a configuration. A manager without webhooks needs no certificate, and has none.
func readinessChecks(cfg Config, certificate, webhooks healthz.Checker) []readinessCheck {
	ofPods, ofWorkloads := cfg.PodProbes && cfg.ServerlessProbes, cfg.InPlaceUpdates && cfg.HoldWebhook
	if !cfg.ContainerRecreateRequests && !cfg.RestartRollouts && !cfg.SidecarSets && !ofPods && !ofWorkloads {
		return nil
	}
	return []readinessCheck{{"certificate", certificate}, {"webhooks", webhooks}}
}

// ready sets the checks of /readyz.
func (h *health) ready(checks []readinessCheck) { h.checks.Store(&checks) }

func (h *health) check(request *http.Request) error {
	checks := h.checks.Load()
	if checks == nil {
		return errors.New("the API server has not answered yet")
	}
	for _, c := range *checks {
		if err := c.check(request); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// serve listens and serves in the group until ctx ends.
func (h *health) serve(ctx context.Context, group *errgroup.Group, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprintln(out, "ok") })
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, request *http.Request) {
		if err := h.check(request); err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(out, "ok")
	})
	return httpserver.Start(ctx, group, httpserver.Config{
		Address: address, Handler: mux, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
	})
}
