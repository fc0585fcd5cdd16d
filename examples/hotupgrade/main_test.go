package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-project/refit/test/kit/loopback"
)

// start runs a container until the test ends, and returns its readiness file.
func start(t *testing.T, address, socket, version, alternative string) string {
	t.Helper()
	s := &server{address: address, socket: socket, version: version, alternative: alternative, readyFile: filepath.Join(t.TempDir(), "ready")}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("version %s: %v", version, err)
		}
	})
	return s.readyFile
}

// dialog is a connection of a client that speaks HTTP/1.1 and tries nothing again.
type dialog struct {
	net.Conn
	reader *bufio.Reader
}

func dial(address string) (*dialog, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &dialog{c, bufio.NewReader(c)}, nil
}

func (d *dialog) ask() (version string, open bool, err error) {
	if err := d.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", false, err
	}
	if _, err := d.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		return "", false, err
	}
	response, err := http.ReadResponse(d.reader, nil)
	if err != nil {
		return "", false, err
	}
	defer response.Body.Close()
	body := make([]byte, 100)
	n, _ := response.Body.Read(body)
	_, _ = response.Body.Read(body) // the end
	return strings.TrimSpace(string(body[:n])), !response.Close, nil
}

// answeredBy asks until an open connection is answered by a version: the predecessor answers what is sent before it has handed
// the connection over, which comes after the listening socket.
func answeredBy(t *testing.T, d *dialog, version string) {
	t.Helper()
	got := ""
	for began := time.Now(); got != version && time.Since(began) < 20*time.Second; {
		var err error
		if got, _, err = d.ask(); err != nil {
			t.Fatalf("an open connection is closed instead of answered by version %s: %v", version, err)
		}
	}
	if got != version {
		t.Errorf("an open connection is answered by version %s, want %s", got, version)
	}
}

// await polls until new connections are answered by a version.
func await(t *testing.T, address, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if d, err := dial(address); err == nil {
			got, _, err := d.ask()
			_ = d.Close()
			if err == nil && got == version {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("version %s does not answer", version)
		case <-ticker.C:
		}
	}
}

// Requests of connections that are kept and of such that are new go on through two upgrades, and no connection is closed.
func TestNoRequestFailsDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	address, socket := loopback.Address(t), filepath.Join(t.TempDir(), "s")
	start(t, address, socket, "1", "0")
	await(t, address, "1")
	silent, err := dial(address) // never sends anything before the end
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	var requests, failures atomic.Int64
	var group sync.WaitGroup
	stop, asked := make(chan struct{}), make(chan struct{})
	for i := range 8 {
		group.Go(func() {
			kept, err := dial(address)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = kept.Close() }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				requests.Add(1)
				_, open, err := kept.ask()
				select {
				case asked <- struct{}{}:
				default:
				}
				if err != nil || !open {
					failures.Add(1)
					t.Logf("kept open: %v, %v", open, err)
					return
				}
				if i%2 == 0 {
					_ = kept.Close()
					again, err := dial(address)
					if err != nil {
						failures.Add(1)
						t.Log(err)
						return
					}
					kept = again
				}
			}
		})
	}
	// serve waits until that many more requests have been answered.
	serve := func(n int) {
		for range n {
			select {
			case <-asked:
			case <-time.After(30 * time.Second):
				t.Error("no request is answered")
				return
			}
		}
	}
	serve(50)
	start(t, address, socket, "5", "1")
	await(t, address, "5")
	serve(50)
	start(t, address, socket, "70", "5")
	await(t, address, "70")
	serve(50)
	answeredBy(t, silent, "70")
	close(stop)
	group.Wait()
	t.Logf("%d requests, %d failed", requests.Load(), failures.Load())
	if failures.Load() > 0 || requests.Load() < 100 {
		t.Errorf("%d of %d requests failed", failures.Load(), requests.Load())
	}
}

// A request that is on its way when the successor comes is answered by the predecessor, and a later one by the successor.
func TestARequestUnderWayIsAnswered(t *testing.T) {
	t.Parallel()
	address, socket := loopback.Address(t), filepath.Join(t.TempDir(), "s")
	start(t, address, socket, "1", "0")
	await(t, address, "1")
	d, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.Write([]byte("GET / HTT")); err != nil {
		t.Fatal(err)
	}
	start(t, address, socket, "2", "1")
	await(t, address, "2")
	if _, err := d.Write([]byte("P/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(d.reader, nil)
	if err != nil || response.Close {
		t.Fatalf("got %+v, %v", response, err)
	}
	body := make([]byte, 10)
	_, _ = response.Body.Read(body)
	_, _ = response.Body.Read(body[5:])
	if err := response.Body.Close(); err != nil || body[0] != '1' && body[0] != '2' { // 2: nothing of it had been read yet
		t.Errorf("the request under way: %q, %v", body, err)
	}
	answeredBy(t, d, "2")
}

// A successor asks at the socket as soon as the container is ready, or serves.
func TestContainerThatNoSuccessorCanAskIsNotReady(t *testing.T) {
	t.Parallel()
	s := &server{
		address: loopback.Address(t), socket: filepath.Join(t.TempDir(), "missing", "s"), version: "1", alternative: "0",
		readyFile: filepath.Join(t.TempDir(), "ready"),
	}
	if err := s.run(t.Context()); err == nil {
		t.Error("a container that cannot be asked goes on")
	}
	if _, err := os.Stat(s.readyFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was ready: %v", err)
	}
}

func TestWhoTakesOver(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version, alternative string
		want                 bool
	}{
		{"1", "0", false}, {"48213", "1", true}, {"1", "48213", false}, {"", "", false}, {"2", "x", false},
	} {
		if got := succeeds(tc.version, tc.alternative); got != tc.want {
			t.Errorf("version %q, alternative %q: %v", tc.version, tc.alternative, got)
		}
	}
}

// The container between upgrades is ready, and does not listen.
func TestTheIdleContainerIsReady(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t)
	s := &server{address: address, version: "0", alternative: "1", readyFile: filepath.Join(t.TempDir(), "ready")}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.readyFile); err != nil {
		t.Error(err)
	}
	if err := (&server{version: "0", readyFile: filepath.Join(t.TempDir(), "missing", "ready")}).run(t.Context()); err == nil {
		t.Error("a container that cannot say that it is ready goes on")
	}
}
