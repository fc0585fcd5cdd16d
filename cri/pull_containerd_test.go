package cri_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/testkit/fakeregistry"
)

// Pulls by a real containerd from a registry that misbehaves on this machine's loopback interface, which containerd has to
// share and reach over plain HTTP.
//
//	REFIT_PULL_SOCKET   containerd's socket; without it the test is skipped
func TestRealRuntimePulls(t *testing.T) {
	t.Parallel()
	socket := os.Getenv("REFIT_PULL_SOCKET")
	if socket == "" {
		t.Skip("REFIT_PULL_SOCKET does not name the socket of a containerd that reaches this machine's loopback interface")
	}
	client, err := cri.New(cri.Config{Endpoint: "unix://" + socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	registry := fakeregistry.Start(t)
	const size = 8 << 20
	for name, test := range map[string]struct {
		fault fakeregistry.Fault
		want  error
	}{
		"well":         {fakeregistry.Fault{}, nil},
		"unauthorized": {fakeregistry.Fault{Status: http.StatusUnauthorized}, cri.ErrUnauthorized},
		"missing":      {fakeregistry.Fault{Status: http.StatusNotFound}, cri.ErrNotFound},
		"limited":      {fakeregistry.Fault{Status: http.StatusTooManyRequests, RetryAfter: "1"}, cri.ErrTooManyRequests},
		"wrongdigest":  {fakeregistry.Fault{WrongBytes: true}, cri.ErrDigestMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry.Add(t, name, size, test.fault)
			id, err := client.PullImage(t.Context(), cri.PullRequest{Image: registry.Host + "/" + name + ":v1"})
			t.Logf("%s: %q %v", name, id, err)
			if !errors.Is(err, test.want) || (test.want == nil) != (id != "") {
				t.Errorf("got %q, %v; want %v", id, err, test.want)
			}
		})
	}
	t.Run("503", func(t *testing.T) {
		t.Parallel()
		registry.Add(t, "away", size, fakeregistry.Fault{Status: http.StatusServiceUnavailable})
		_, err := client.PullImage(t.Context(), cri.PullRequest{Image: registry.Host + "/away:v1"})
		if t.Log(err); err == nil {
			t.Error("pulled")
		}
	})
	t.Run("by digest", func(t *testing.T) {
		t.Parallel()
		reference := registry.Host + "/digest@" + registry.Add(t, "digest", size, fakeregistry.Fault{})
		id, err := client.PullImage(t.Context(), cri.PullRequest{Image: reference})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := client.ImageID(t.Context(), reference); found != id || err != nil {
			t.Errorf("the node has %q, %v; pulled %q", found, err, id)
		}
	})
	t.Run("progress", func(t *testing.T) { t.Parallel(); progress(t, client, registry, size) })
	t.Run("stall and cancel", func(t *testing.T) { t.Parallel(); stall(t, client, registry, size) })
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
