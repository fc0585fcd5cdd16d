package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/refit-project/refit/test/kit/loopback"
)

// The state that one of them sets is what all answer by.
func TestState(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	broken := make(chan error, 1)
	web := httptest.NewServer(serveState(file))
	defer web.Close()
	grpcAddress, tcpAddress := loopback.Address(t), loopback.Address(t)
	stop, err := listenGRPC(grpcAddress, file, broken)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer listenTCP(tcpAddress, file, broken)()
	for _, text := range []string{"", "down", "up"} {
		if text != "" {
			put(t, web.URL, text)
		}
		up := text != "down"
		var out bytes.Buffer
		code, err := state([]string{file}, &out)
		if err != nil || (code == 0) != up || up && strings.TrimSpace(out.String()) != "up" {
			t.Errorf("%q: exec: %d %q %v", text, code, out.String(), err)
		}
		if got := askHealth(t, grpcAddress); (got == grpc_health_v1.HealthCheckResponse_SERVING) != up {
			t.Errorf("%q: grpc: %s", text, got)
		}
		deadline := time.Now().Add(10 * time.Second)
		for connects(t.Context(), tcpAddress) != up {
			if time.Now().After(deadline) {
				t.Fatalf("%q: TCP port open: %v", text, !up)
			}
			time.Sleep(time.Millisecond)
		}
	}
	select {
	case err := <-broken:
		t.Error(err)
	default:
	}
}

func put(t *testing.T, url, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("PUT %s: %v %v", text, resp, err)
	}
	_ = resp.Body.Close()
}

func askHealth(t *testing.T, address string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetStatus()
}

func connects(ctx context.Context, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
