package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// start runs a server until the test ends.
func start(t *testing.T, address, socket, version string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, address, socket, version) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			t.Errorf("version %s: %v", version, err)
		}
	})
}

func get(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), err
}

// await polls until the server answers with a version.
func await(t *testing.T, url, version string) {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if got, err := get(client, url); err == nil && got == version {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("version %s does not answer", version)
		case <-ticker.C:
		}
	}
}

func TestNoRequestFailsDuringAnUpgrade(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	socket, url := filepath.Join(t.TempDir(), "s"), "http://"+address
	t.Setenv("SIDECARSET_VERSION", "1")
	t.Setenv("SIDECARSET_VERSION_ALT", "0")
	start(t, address, socket, "one")
	await(t, url, "one")

	var requests, failures atomic.Int64
	var group sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				requests.Add(1)
				if _, err := get(client, url); err != nil {
					failures.Add(1)
					t.Log(err)
				}
			}
		})
	}
	t.Setenv("SIDECARSET_VERSION", "2")
	t.Setenv("SIDECARSET_VERSION_ALT", "1")
	start(t, address, socket, "two")
	await(t, url, "two")
	t.Setenv("SIDECARSET_VERSION", "3")
	t.Setenv("SIDECARSET_VERSION_ALT", "2")
	start(t, address, socket, "three")
	await(t, url, "three")
	close(stop)
	group.Wait()
	t.Logf("%d requests, %d failed", requests.Load(), failures.Load())
	if failures.Load() > 0 {
		t.Errorf("%d of %d requests failed", failures.Load(), requests.Load())
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
		if got := successor(tc.version, tc.alternative); got != tc.want {
			t.Errorf("version %q, alternative %q: %v", tc.version, tc.alternative, got)
		}
	}
}
