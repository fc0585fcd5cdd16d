package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// stateUp is the state in which everything answers well; no file means it too.
const stateUp = "up"

// stateInterval is between looks at the file for the TCP port, which has to be open or closed beforehand.
const stateInterval = 20 * time.Millisecond

// maxState bounds what is put into the file, in bytes.
const maxState = 64 << 10

func readState(file string) (string, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || file == "" {
		return stateUp, nil
	}
	return strings.TrimSpace(string(content)), err
}

// state is the subcommand: it prints the state and ends with 0 while it is up, or sets it.
func state(args []string, out io.Writer) (int, error) {
	if len(args) == 2 {
		return 0, os.WriteFile(args[0], []byte(args[1]), 0o644)
	}
	text, err := readState(args[0])
	if err != nil {
		return 0, fmt.Errorf("read state: %w", err)
	}
	fmt.Fprintln(out, text)
	if text != stateUp {
		return 1, nil
	}
	return 0, nil
}

// serveState is GET /state, 200 or 503, and PUT /state.
func serveState(file string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(io.LimitReader(r.Body, maxState))
			if err = errors.Join(err, os.WriteFile(file, body, 0o644)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		text, err := readState(file)
		if err != nil || text != stateUp {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, text)
	}
}

// health is the health service of gRPC.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	file string
}

// Check implements grpc.health.v1.
func (h health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	text, err := readState(h.file)
	status := grpc_health_v1.HealthCheckResponse_SERVING
	if err != nil || text != stateUp {
		status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: status}, err
}

// listenGRPC serves until stop is called.
func listenGRPC(address, file string, broken chan<- error) (stop func(), err error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // once, at start
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health{file: file})
	var work sync.WaitGroup
	work.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			report(broken, err)
		}
	})
	return func() { server.Stop(); work.Wait() }, nil
}

// listenTCP accepts connections while the state is up, until stop is called.
func listenTCP(address, file string, broken chan<- error) (stop func()) {
	end := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		var listener net.Listener
		ticker := time.NewTicker(stateInterval)
		defer ticker.Stop()
		for {
			text, err := readState(file)
			switch up := err == nil && text == stateUp; {
			case up && listener == nil:
				if listener, err = net.Listen("tcp", address); err != nil { //nolint:noctx // as above
					report(broken, err)
					return
				}
				accepting := listener
				work.Go(func() { accept(accepting) })
			case !up && listener != nil:
				_ = listener.Close()
				listener = nil
			}
			select {
			case <-ticker.C:
			case <-end:
				if listener != nil {
					_ = listener.Close()
				}
				return
			}
		}
	})
	return func() { close(end); work.Wait() }
}

func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}
