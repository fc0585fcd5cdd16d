package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every serverless pod pays for the sidecar, so its size is a feature with a test.
const (
	maxBinary   = 25_000_000
	maxResident = 20_000_000
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
	resident := residentIdle(t, program, dir)
	t.Logf("resident, idle with hot_update and http_probe on: %.1f MB", float64(resident)/1e6)
	if resident > maxResident {
		t.Errorf("%d bytes resident, want at most %d", resident, maxResident)
	}
}

// residentIdle is VmRSS of the program after some seconds of work with both plugins.
func residentIdle(t *testing.T, program, dir string) int64 {
	t.Helper()
	address, health := freeAddress(t), freeAddress(t)
	text := fmt.Sprintf(`server: {address: '%s'}
health: '%s'
plugins:
- name: hot_update
  config: {fileDir: '%s', loadPatchType: signal, signal: {processName: 'nginx: master process nginx', signalName: SIGHUP}}
- name: http_probe
  config:
    startDelaySeconds: 1
    probeIntervalSeconds: 1
    endpoints: [{url: 'http://%s/healthz', storageConfig: {httpMetric: {metricName: players}}}]
`, address, health, dir, health)
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
	<-time.After(6 * time.Second) // of probes
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", sidecar.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(string(status))
	if match == nil {
		t.Fatalf("no VmRSS in %s", strings.ReplaceAll(string(status), "\n", "; "))
	}
	kib, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
