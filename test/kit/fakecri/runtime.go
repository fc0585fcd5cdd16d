package fakecri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Name is what the fake calls itself; its container IDs read "containerd://...".
const Name = "containerd"

// Runtime is the fake. Its methods may be called from any goroutine. Programs and Commands are to
// be filled in before the first call that needs them.
type Runtime struct {
	// Programs says how containers behave, by their command joined with spaces. A container with
	// any other command gets the zero Program.
	Programs map[string]Program
	// Commands says how execs behave, by their command joined with spaces. Others do not start.
	Commands map[string]Command

	runtimeapi.UnimplementedRuntimeServiceServer
	socket string
	journal

	serverMu sync.Mutex // guards server; never taken while holding mu
	server   *grpc.Server

	mu          sync.Mutex
	sandboxes   map[string]*sandbox
	instances   map[string]*instance
	subscribers map[chan *runtimeapi.ContainerEventResponse]bool
	kubelet     *Kubelet
	lastTime    int64
	images      map[string]string // IDs on the node, by the name they were pulled by
	registry    map[string]RegistryImage
	pulls       []Pulled

	closing   chan struct{}
	closeOnce sync.Once
	work      sync.WaitGroup
}

// Start gives a test a runtime of its own on a socket of its own, closed when the test ends.
func Start(tb testing.TB) *Runtime {
	tb.Helper()
	//nolint:usetesting // with a long test name tb.TempDir passes the 108 bytes of a socket address
	dir, err := os.MkdirTemp("", "fakecri")
	if err != nil {
		tb.Fatal(err)
	}
	r, err := Listen(filepath.Join(dir, "containerd.sock"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		r.Close()
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// Listen starts a runtime on the socket. The caller closes it.
func Listen(socket string) (*Runtime, error) {
	r := &Runtime{
		Programs:    map[string]Program{},
		Commands:    map[string]Command{},
		socket:      socket,
		sandboxes:   map[string]*sandbox{},
		instances:   map[string]*instance{},
		subscribers: map[chan *runtimeapi.ContainerEventResponse]bool{},
		closing:     make(chan struct{}),
		images:      map[string]string{},
		registry:    map[string]RegistryImage{},
	}
	if err := r.Up(); err != nil {
		return nil, err
	}
	return r, nil
}

// Endpoint is the address of the socket in the form of cri.Config.
func (r *Runtime) Endpoint() string { return "unix://" + r.socket }

// Close ends the server, what the containers were about to do, and the toy kubelet, and waits.
// A second call does nothing.
func (r *Runtime) Close() {
	r.Down()
	r.closeOnce.Do(func() { close(r.closing) })
	r.work.Wait()
}

// Down takes the socket away, as a stop of the runtime does: calls under way break off with
// Unavailable. The containers live on, as they do under containerd.
func (r *Runtime) Down() {
	r.serverMu.Lock()
	defer r.serverMu.Unlock()
	if r.server != nil {
		r.server.Stop()
		r.server = nil
	}
}

// Up listens again after Down. On a runtime that is up it does nothing.
func (r *Runtime) Up() error {
	r.serverMu.Lock()
	defer r.serverMu.Unlock()
	if r.server != nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", r.socket)
	if err != nil {
		return fmt.Errorf("fakecri: %w", err)
	}
	server := grpc.NewServer(
		grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(r.unary),
		grpc.StreamInterceptor(r.stream),
	)
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, imageService{Runtime: r})
	r.server = server
	r.work.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			panic(err) // a fake that does not serve must not let tests pass
		}
	})
	return nil
}

// Restart is Down, a while without a socket, and Up.
func (r *Runtime) Restart(downtime time.Duration) error {
	r.Down()
	select {
	case <-time.After(downtime):
	case <-r.closing:
	}
	return r.Up()
}

// after does f later, unless the runtime is closed before. Called with mu held or not; f runs without.
func (r *Runtime) after(d time.Duration, f func()) {
	r.work.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-r.closing:
		}
	})
}

// now is a time in CRI's unit that never repeats, so that creation orders instances. mu is held.
func (r *Runtime) now() int64 {
	r.lastTime = max(r.lastTime+1, time.Now().UnixNano())
	return r.lastTime
}

func newID() string {
	b := make([]byte, 32)
	rand.Read(b)
	return hex.EncodeToString(b)
}
