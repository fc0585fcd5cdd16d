package cri_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/kit/criconformance"
	"github.com/refit-project/refit/test/kit/fakeregistry"
)

// Pulls by a real containerd from a registry on the loopback interface, which containerd has to share.
//
//	REFIT_PULL_SOCKET   containerd's socket; without it the test is skipped
//	REFIT_PULL_HOSTS    its folder of registry hosts (config_path), into which the test puts the registry; unset: containerd
//	                    reaches registries on the loopback interface over plain HTTP by itself
func TestRealRuntimePulls(t *testing.T) {
	t.Parallel()
	socket := os.Getenv("REFIT_PULL_SOCKET")
	if socket == "" {
		t.Skip("REFIT_PULL_SOCKET does not name the socket of a containerd that reaches this process's loopback interface")
	}
	endpoint := "unix://" + socket
	client, err := cri.New(cri.Config{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	registry := fakeregistry.Start(t)
	if folder := os.Getenv("REFIT_PULL_HOSTS"); folder != "" {
		addHost(t, folder, registry.Host)
	}
	const size = 8 << 20
	faults := map[criconformance.PullFault]fakeregistry.Fault{
		criconformance.PullUnauthorized: {Status: http.StatusUnauthorized},
		criconformance.PullMissing:      {Status: http.StatusNotFound},
		criconformance.PullLimited:      {Status: http.StatusTooManyRequests, RetryAfter: "1"},
		criconformance.PullAway:         {Status: http.StatusServiceUnavailable},
		criconformance.PullWrongDigest:  {WrongBytes: true},
		criconformance.PullStalls:       {StallAfter: size / 2},
	}
	var served atomic.Int32
	t.Run("suite", func(t *testing.T) {
		t.Parallel()
		criconformance.RunPulls(t, criconformance.PullFixture{Endpoint: endpoint, Serve: func(t *testing.T, fault criconformance.PullFault) (name, digest string) {
			repository := fmt.Sprintf("%s-%d", fault, served.Add(1))
			return registry.Host + "/" + repository, registry.Add(t, repository, size, faults[fault])
		}})
	})
	t.Run("progress", func(t *testing.T) { t.Parallel(); progress(t, client, registry, size) })
	t.Run("stall", func(t *testing.T) { t.Parallel(); stall(t, client, registry, size) })
}

// addHost has containerd ask the registry itself, and not a mirror that it has for all others.
func addHost(t *testing.T, folder, host string) {
	t.Helper()
	own := filepath.Join(folder, host)
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	text := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", host)
	if err := os.WriteFile(filepath.Join(own, "hosts.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func progress(t *testing.T, client *cri.Client, registry *fakeregistry.Registry, size int64) {
	registry.Add(t, "slow", int(size), fakeregistry.Fault{BytesPerSecond: int(size) / 4})
	read := client.MeterPull(registry.Host, "slow", "", time.Now().Add(-time.Second))
	ended := make(chan error, 1)
	go func() {
		_, err := client.PullImage(t.Context(), cri.PullRequest{Image: registry.Host + "/slow:v1"})
		ended <- err
	}()
	var seen []cri.Progress
	for ticker := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case err := <-ended:
			ticker.Stop()
			if err != nil {
				t.Fatal(err)
			}
			between := 0
			for i, p := range seen {
				if p.Total < size || p.Total > size+1<<20 || p.Pulled > p.Total || (i > 0 && p.Pulled < seen[i-1].Pulled) {
					t.Errorf("progress %+v after %+v", p, seen[max(i-1, 0)])
				}
				if p.Pulled > p.Total/10 && p.Pulled < p.Total*9/10 {
					between++
				}
			}
			if between < 3 {
				t.Errorf("seldom seen in the middle: %+v", seen)
			}
			return
		case <-ticker.C:
			p, err := read(t.Context())
			if err != nil {
				t.Error(err)
			}
			if p.Total > 0 {
				seen = append(seen, p)
			}
		}
	}
}

func stall(t *testing.T, client *cri.Client, registry *fakeregistry.Registry, size int64) {
	registry.Add(t, "stalls", int(size), fakeregistry.Fault{StallAfter: int(size) / 2})
	read := client.MeterPull(registry.Host, "stalls", "", time.Now().Add(-time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := client.PullImage(ctx, cri.PullRequest{Image: registry.Host + "/stalls:v1"})
	if t.Log(err); !errors.Is(err, cri.ErrDeadline) || time.Since(begun) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	p, err := read(t.Context())
	if t.Logf("%+v", p); err != nil || p.Pulled < size/4 || p.Pulled > size*3/4 {
		t.Errorf("progress %+v, %v", p, err)
	}
}
