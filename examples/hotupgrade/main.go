// Command hotupgrade is a sidecar that can be upgraded hot: an HTTP server that hands its listening socket and its open
// connections over to its successor, through a Unix socket in a volume that both containers mount. No connection is refused
// or closed, and no request fails.
//
// See docs/sidecarset-rollout.md for what a SidecarSet has to say.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// limit bounds what is left to do when the server ends or has a successor: requests are answered, connections handed over.
const limit = 10 * time.Second

// server is how one container runs.
type server struct {
	address   string
	socket    string // Unix socket by which a successor takes over
	readyFile string // exists while this container serves, or has nothing to serve
	// version of this container and of the other one of the pod, from SIDECARSET_VERSION and SIDECARSET_VERSION_ALT.
	version, alternative string
}

func main() {
	s := server{version: os.Getenv("SIDECARSET_VERSION"), alternative: os.Getenv("SIDECARSET_VERSION_ALT")}
	flag.StringVar(&s.address, "listen", ":8080", "address of the server")
	flag.StringVar(&s.socket, "handover", "/handover/server.sock", "Unix socket by which the sockets are handed over")
	flag.StringVar(&s.readyFile, "ready-file", "/tmp/ready", "`file` by which the command ready knows that the container serves")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: hotupgrade [flags]         serve\n       hotupgrade [flags] ready   succeed if the container serves: for a readiness probe")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.Arg(0) == "ready" {
		if _, err := os.Stat(s.readyFile); err != nil {
			fmt.Fprintln(os.Stderr, "not serving:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := s.run(ctx)
	stop()
	if err != nil {
		slog.Error("hotupgrade", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. When a successor has taken over, or when there is nothing to serve, it waits for the end of ctx:
// kubelet would restart a container that ends.
func (s *server) run(ctx context.Context) error {
	if s.version == "0" { // the container with hotUpgradeEmptyImage
		if err := s.ready(); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	listener, predecessor, err := s.listen(ctx)
	if err != nil {
		return err
	}
	entrance, err := openEntrance(s.socket)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	open := newConnections()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, s.version) })
	web := &http.Server{ReadHeaderTimeout: limit, Handler: answer, ConnState: open.stateChanged}
	served := make(chan error, 2)
	serving := 1
	go func() { served <- web.Serve(open.of(listener)) }()
	if predecessor != nil {
		serving++
		go func() { served <- web.Serve(open.of(&inherited{predecessor})) }() // until the predecessor has sent all
	}
	if err := s.ready(); err != nil {
		return errors.Join(err, entrance.Close(), web.Close())
	}
	slog.Info("serving", "version", s.version, "tookOver", predecessor != nil)
	successor, err := offer(ctx, entrance, listener)
	if err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if ctx.Err() != nil {
			err = nil
		}
		return errors.Join(err, web.Shutdown(ending))
	}
	// The successor accepts connections of the same socket now. Serve returns when none is accepted here any more.
	_ = listener.Close()
	if predecessor != nil {
		_ = predecessor.Close()
	}
	for range serving {
		if err := <-served; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			slog.Warn("serving has ended", "err", err)
		}
	}
	handed := open.handOver(successor, limit)
	err = errors.Join(web.Close(), successor.Close())
	slog.Info("handed over", "version", s.version, "connections", handed)
	<-ctx.Done()
	return err
}

func (s *server) ready() error { return os.WriteFile(s.readyFile, nil, 0o600) }

// listen takes the listening socket of a predecessor over, or opens it.
func (s *server) listen(ctx context.Context) (net.Listener, *net.UnixConn, error) {
	if succeeds(s.version, s.alternative) {
		listener, predecessor, err := takeOver(ctx, s.socket)
		if err == nil {
			return listener, predecessor, nil
		}
		slog.Warn("nothing to take over: opening the address", "err", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil, nil
}

// succeeds reports whether another container serves that this one is to take over from: it has a version, and a lower one.
func succeeds(version, alternative string) bool {
	own, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return false
	}
	other, err := strconv.ParseUint(alternative, 10, 64)
	return err == nil && other != 0 && own > other
}
