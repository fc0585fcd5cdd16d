package probe_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/refit-project/refit/probe"
)

// counting counts the connections that a listener accepts, and those that are open.
type counting struct {
	net.Listener
	accepted, open atomic.Int32
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.accepted.Add(1)
	c.open.Add(1)
	return &counted{Conn: conn, closed: sync.OnceFunc(func() { c.open.Add(-1) })}, nil
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// healthy serves the health service until stop.
func healthy(l net.Listener) (stop func()) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	return func() { server.Stop(); <-done }
}

func TestGRPCKeepsItsConnection(t *testing.T) {
	t.Parallel()
	l := &counting{Listener: listen(t)}
	address := l.Addr().String()
	stop := healthy(l)
	g := &probe.GRPC{Address: address}
	for range 10 {
		check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
	}
	if n := l.accepted.Load(); n != 1 {
		t.Errorf("%d connections for 10 probes", n)
	}

	// An application that is restarted is found to be away, and found again as soon as it is back.
	stop()
	for range 5 {
		check(t, once(t, g, time.Minute), probe.Failed, "refused")
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	stop = healthy(again)
	defer stop()
	check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// ending is a health service that is away at the second call, as one that ends while another takes its place.
type ending struct {
	grpc_health_v1.UnimplementedHealthServer
	calls atomic.Int32
}

// Check implements grpc_health_v1.HealthServer.
func (e *ending) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if e.calls.Add(1) == 2 {
		return nil, grpcstatus.Error(codes.Unavailable, "ending")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

// What the kept connection leads to may be gone, and the application may be well.
func TestGRPCAsksOnceMoreOnANewConnection(t *testing.T) {
	t.Parallel()
	l := &counting{Listener: listen(t)}
	server, service := grpc.NewServer(), &ending{}
	grpc_health_v1.RegisterHealthServer(server, service)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	defer func() { server.Stop(); <-done }()
	g := &probe.GRPC{Address: l.Addr().String()}
	defer func() { _ = g.Close() }()
	for range 2 {
		check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
	}
	if calls, connections := service.calls.Load(), l.accepted.Load(); calls != 3 || connections != 2 {
		t.Errorf("%d calls on %d connections, want 3 on 2", calls, connections)
	}
}

// The server may close what it has not heard of for a while.
func TestGRPCReconnectsWhenTheServerHasClosedTheConnection(t *testing.T) {
	t.Parallel()
	l := &counting{Listener: listen(t)}
	address := l.Addr().String()
	stop := healthy(l)
	g := &probe.GRPC{Address: address}
	defer func() { _ = g.Close() }()
	check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
	stop()
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer healthy(again)()
	check(t, once(t, g, time.Minute), probe.Succeeded, "SERVING")
}

func TestAWorkerClosesTheConnectionOfItsProbe(t *testing.T) {
	t.Parallel()
	l := &counting{Listener: listen(t)}
	stop := healthy(l)
	defer stop()
	spec := func() probe.Spec {
		return probe.Spec{Prober: &probe.GRPC{Address: l.Addr().String()}, Timing: probe.Timing{Period: 10 * time.Millisecond}.WithDefaults()}
	}
	reports := make(chan probe.Result, 1000)
	worker, err := probe.Start(t.Context(), spec(), func(r probe.Result) { reports <- r })
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := <-reports; r.State != probe.Succeeded {
			t.Errorf("result %+v", r)
		}
	}
	if err := worker.Update(spec()); err != nil {
		t.Error(err)
	}
	settled(t, func() bool { return l.accepted.Load() == 2 && l.open.Load() == 1 }, "the connection of the replaced probe to be closed")
	worker.Stop()
	settled(t, func() bool { return l.open.Load() == 0 }, "the connection of the last one to be closed")
	if n := l.accepted.Load(); n != 2 {
		t.Errorf("%d connections of two probes", n)
	}
}

func settled(t *testing.T, is func() bool, what string) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(20 * time.Second)
	for !is() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("waited for %s", what)
		}
	}
}

func BenchmarkGRPC(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer healthy(l)()
	for name, keep := range map[string]bool{"kept": true, "fresh": false} {
		b.Run(name, func(b *testing.B) {
			g := &probe.GRPC{Address: l.Addr().String()}
			for b.Loop() {
				if got := g.Probe(b.Context()); got.State != probe.Succeeded {
					b.Fatal(got)
				}
				if !keep {
					_ = g.Close()
				}
			}
			_ = g.Close()
		})
	}
}
