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

// health serves /healthz, 200 while the process lives, and /readyz, 200 while the webhooks are served. It serves from the
// start of the program, so that kubelet does not kill one that waits for the API server.
type health struct {
	webhooks atomic.Pointer[healthz.Checker] // nil before the API server has answered
}

// ready makes /readyz depend on the webhooks.
func (h *health) ready(webhooks healthz.Checker) { h.webhooks.Store(&webhooks) }

func (h *health) check(request *http.Request) error {
	webhooks := h.webhooks.Load()
	if webhooks == nil {
		return errors.New("the API server has not answered yet")
	}
	return (*webhooks)(request)
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
