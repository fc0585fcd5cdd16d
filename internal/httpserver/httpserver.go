// Package httpserver serves HTTP until a context ends, with limits on what a client may send and how slowly. Handlers and
// authentication must stay out.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	headerTimeout   = 5 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = time.Second
)

// Config configures one server. All fields except TLS are required.
type Config struct {
	Address string // host:port
	Handler http.Handler
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// ReadTimeout bounds the reading of a request with its body. Responses have no limit, because an update may take long.
	ReadTimeout time.Duration
	// MaxHeaderBytes bounds the header of a request.
	MaxHeaderBytes int
}

// Start listens, and serves in the group until ctx ends. Requests in progress then have a second to end.
func Start(ctx context.Context, group *errgroup.Group, config Config) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if config.TLS != nil {
		listener = tls.NewListener(listener, config.TLS)
	}
	server := &http.Server{
		Handler: config.Handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: config.ReadTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: config.MaxHeaderBytes,
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", config.Address, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(last); err != nil {
			return server.Close()
		}
		return nil
	})
	return nil
}
