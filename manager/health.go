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

	"github.com/refit-project/refit/httpserver"
)

// health serves /healthz, 200 while the process lives, and /readyz, 200 while the webhooks can be called, if there are any. It serves
// from the start of the program, so that kubelet does not kill one that waits for the API server.
type health struct {
	checks atomic.Pointer[[]readinessCheck] // nil before the API server has answered
}

// readinessCheck is one of the conditions of /readyz.
type readinessCheck struct {
	name  string
	check healthz.Checker
}

// readinessChecks are those of a manager with a configuration. One without webhooks needs no certificate, and nothing makes one for it.
func readinessChecks(cfg Config, certificate, webhooks healthz.Checker) []readinessCheck {
	if !cfg.ContainerRecreateRequests && !cfg.RestartRollouts && !cfg.SidecarSets {
		return nil
	}
	return []readinessCheck{{"certificate", certificate}, {"webhooks", webhooks}}
}

// ready makes /readyz depend on checks.
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
