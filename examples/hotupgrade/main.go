// Command hotupgrade is a sidecar that can be upgraded hot: an HTTP server that hands its listening socket over to its
// successor, through a Unix socket in a volume that both containers mount. No connection is refused and no request fails.
//
// See docs/sidecarset-rollout.md for what a SidecarSet has to say.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	address := flag.String("listen", ":8080", "address of the server")
	socket := flag.String("handover", "/handover/server.sock", "Unix socket by which the listening socket is handed over")
	version := flag.String("version", "1", "what the server answers with")
	empty := flag.Bool("empty", false, "do nothing, as the container between upgrades")
	flag.Parse()
	if *empty {
		<-ctx.Done()
		return
	}
	if err := run(ctx, *address, *socket, *version); err != nil {
		stop()
		slog.Error("hotupgrade", "err", err)
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// run serves until ctx ends, or until a successor has taken the listening socket over and the last request is answered. Then
// it waits for ctx: kubelet would restart a container that ends.
func run(ctx context.Context, address, socket, version string) error {
	listener, err := listen(ctx, address, socket, successor(os.Getenv("SIDECARSET_VERSION"), os.Getenv("SIDECARSET_VERSION_ALT")))
	if err != nil {
		return err
	}
	w := &worker{version: version, connections: map[net.Conn]bool{}}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: w, ConnState: w.track}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	taken := make(chan error, 1)
	go func() { taken <- offer(ctx, listener, socket) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case err := <-taken:
		if ctx.Err() == nil && err != nil {
			return err
		}
	}
	// The successor accepts connections of the same socket now. Those that are open here are answered, and told to close: who
	// closes them without that may do so while a request is on its way.
	_ = listener.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	w.drain(ctx)
	if err := server.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	<-ctx.Done()
	return nil
}

// drainLimit is how long open connections may be used after a successor has taken over.
const drainLimit = 30 * time.Second

// worker answers requests, and knows which connections are open.
type worker struct {
	version string

	mu          sync.Mutex
	connections map[net.Conn]bool
	drained     chan struct{} // closed when no connection is left; nil before the end
}

// ServeHTTP implements http.Handler.
func (w *worker) ServeHTTP(response http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	if w.drained != nil {
		response.Header().Set("Connection", "close")
	}
	w.mu.Unlock()
	fmt.Fprintln(response, w.version)
}

func (w *worker) track(connection net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch state {
	case http.StateNew:
		w.connections[connection] = true
	case http.StateClosed, http.StateHijacked:
		delete(w.connections, connection)
		if len(w.connections) == 0 && w.drained != nil {
			close(w.drained)
			w.drained = make(chan struct{})
		}
	}
}

// drain waits until no connection is open.
func (w *worker) drain(ctx context.Context) {
	w.mu.Lock()
	drained := make(chan struct{})
	w.drained = drained
	empty := len(w.connections) == 0
	w.mu.Unlock()
	if empty {
		return
	}
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	select {
	case <-drained:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// successor reports whether another container serves that this one is to take over from: it has a version, and a lower one.
func successor(version, alternative string) bool {
	own, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return false
	}
	other, err := strconv.ParseUint(alternative, 10, 64)
	return err == nil && other != 0 && own > other
}

// listen takes the listening socket over, or opens it.
func listen(ctx context.Context, address, socket string, takeOver bool) (net.Listener, error) {
	if takeOver {
		listener, err := receive(ctx, socket)
		if err == nil {
			return listener, nil
		}
		slog.Warn("nothing to take over: opening the address", "err", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}
