// Package gateway is the cluster's one door to the machine: a program with a foot in both networks that
// serves the image registry to the nodes and to the machine, and the API server to the machine's loopback.
// It looks into nothing that passes.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/test/cluster/process"
	"github.com/refit-project/refit/test/cluster/state"
)

const (
	dialTimeout     = 5 * time.Second
	shutdownTimeout = 2 * time.Second
)

// Config is where the gateway listens.
type Config struct {
	// Node is a process in the first node's network namespace.
	Node int
	// APIPort and RegistryPort are the same on the machine's loopback and in the cluster.
	APIPort, RegistryPort int
	// Blobs is the folder of the images' layers.
	Blobs string
}

// Run serves until the context ends.
func Run(ctx context.Context, config Config) error {
	if err := os.MkdirAll(config.Blobs, 0o755); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	loopback := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	// The API server itself listens on the same port inside; only the machine's loopback is ours.
	var listen net.ListenConfig
	api, err := listen.Listen(ctx, "tcp", loopback(config.APIPort))
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	outside, err := listen.Listen(ctx, "tcp", loopback(config.RegistryPort))
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	inside, err := listenInside(ctx, config.Node, net.JoinHostPort("0.0.0.0", strconv.Itoa(config.RegistryPort)))
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	images := &http.Server{
		Handler: registry.New(
			registry.WithBlobHandler(registry.NewDiskBlobHandler(config.Blobs)),
			registry.Logger(log.New(io.Discard, "", 0)),
		),
		ReadHeaderTimeout: time.Minute,
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range []net.Listener{outside, inside} {
		group.Go(func() error { return ignoreClosed(images.Serve(listener)) })
	}
	group.Go(func() error { return forward(ctx, api, config) })
	group.Go(func() error {
		<-ctx.Done()
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		return errors.Join(images.Shutdown(shutdown), ignoreClosed(api.Close()))
	})
	return group.Wait()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// inside runs do on a thread in the network namespace of a process. A socket stays in the namespace it was
// made in, whichever thread uses it later.
func inside(pid int, do func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with this goroutine, for it is of no use to others.
		runtime.LockOSThread()
		if err := process.EnterNet(pid); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}

func listenInside(ctx context.Context, pid int, address string) (net.Listener, error) {
	var listener net.Listener
	err := inside(pid, func() (err error) {
		var listen net.ListenConfig
		listener, err = listen.Listen(ctx, "tcp", address)
		return err
	})
	return listener, err
}

// forward hands connections over to the API server.
func forward(ctx context.Context, listener net.Listener, config Config) error {
	target := net.JoinHostPort(state.NodeIP(1), strconv.Itoa(config.APIPort))
	var open sync.WaitGroup
	defer open.Wait()
	for {
		from, err := listener.Accept()
		if err != nil {
			return ignoreClosed(err)
		}
		open.Go(func() {
			defer func() { _ = from.Close() }()
			var to net.Conn
			err := inside(config.Node, func() (err error) {
				dialer := net.Dialer{Timeout: dialTimeout}
				to, err = dialer.DialContext(ctx, "tcp", target)
				return err
			})
			if err != nil {
				// The client sees its connection closed, as it would by a server that is down.
				return
			}
			defer func() { _ = to.Close() }()
			relay(ctx, from, to)
		})
	}
}

// relay copies both ways until one side ends or the context does.
func relay(ctx context.Context, a, b net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer stop()
	var copies sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			defer cancel()
			_, _ = io.Copy(pair[0], pair[1])
		})
	}
	copies.Wait()
}
