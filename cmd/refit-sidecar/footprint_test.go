package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/refit-project/refit/test/kit/loopback"
)

// Every serverless pod pays for the sidecar, so its size is a feature with a test. A pod is charged for the working set
// of its cgroup: anonymous memory, and what the kernel holds for it. Pages of the program file are shared and can be
// dropped, so VmRSS, which counts them, says little. Here is no API server; a connection to one takes about 1 MB.
const (
	maxBinary    = 25_000_000
	maxAnonymous = 8_000_000
	// settled is the number of probes, one a second, after which the start is over.
	settled = 8
	// buildTags leave out what gRPC would bring for a debug page: net/trace and with it html/template, through
	// which no unused method can be left out.
	buildTags = "grpcnotrace"
)

func TestFootprint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "refit-sidecar")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags="+buildTags, "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("static binary: %.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("static binary of %d bytes, want at most %d", info.Size(), maxBinary)
	}
	anonymous, resident := idleMemory(t, program, dir)
	t.Logf("idle with hot_update and http_probe on: RssAnon %.1f MB, VmRSS %.1f MB", float64(anonymous)/1e6, float64(resident)/1e6)
	if anonymous > maxAnonymous {
		t.Errorf("%d bytes of anonymous memory, want at most %d", anonymous, maxAnonymous)
	}
}

// idleMemory is RssAnon and VmRSS of the program when both plugins have been at work for a while.
func idleMemory(t *testing.T, program, dir string) (anonymous, resident int64) {
	t.Helper()
	probed := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case probed <- struct{}{}:
		case <-r.Context().Done():
		}
	}))
	defer app.Close()
	text := fmt.Sprintf(`server: {address: '%s'}
health: '%s'
plugins:
- name: hot_update
  config: {fileDir: '%s', loadPatchType: signal, signal: {processName: 'nginx: master process nginx', signalName: SIGHUP}}
- name: http_probe
  config:
    startDelaySeconds: 1
    probeIntervalSeconds: 1
    endpoints: [{url: '%s', storageConfig: {httpMetric: {metricName: players}}}]
`, loopback.Address(t), loopback.Address(t), dir, app.URL)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sidecar := exec.CommandContext(t.Context(), program, "--config", config)
	sidecar.Env = []string{"POD_NAME=p", "POD_NAMESPACE=n"}
	sidecar.Stderr = t.Output()
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sidecar.Process.Signal(os.Interrupt)
		if err := sidecar.Wait(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}()
	patience := time.After(time.Minute)
	for range settled {
		select {
		case <-probed:
		case <-patience:
			t.Fatal("the plugins do not work")
		}
	}
	return memoryOf(t, sidecar.Process.Pid, "RssAnon"), memoryOf(t, sidecar.Process.Pid, "VmRSS")
}

// memoryOf is a field of /proc/<pid>/status in bytes, see proc_pid_status(5).
func memoryOf(t *testing.T, pid int, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("no %s in %q", field, text)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
