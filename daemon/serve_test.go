package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// tokens answers MayGet by token.
type tokens map[string]error

func (d tokens) MayGet(_ context.Context, token, path string) (bool, error) {
	err, known := d[token]
	return known && err == nil && path == "/metrics", err
}

func TestMetricsNeedAToken(t *testing.T) {
	t.Parallel()
	handler := authorized(tokens{"good": nil, "unlucky": errors.New("API server away")}, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, "numbers")
	}))
	for name, tt := range map[string]struct {
		header string
		want   int
	}{
		"good token":          {header: "Bearer good", want: http.StatusOK},
		"no token":            {want: http.StatusUnauthorized},
		"empty token":         {header: "Bearer ", want: http.StatusUnauthorized},
		"password":            {header: "Basic good", want: http.StatusUnauthorized},
		"unknown token":       {header: "Bearer bad", want: http.StatusForbidden},
		"nobody can be asked": {header: "Bearer unlucky", want: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			request.Header.Set("Authorization", tt.header)
			out := httptest.NewRecorder()
			handler.ServeHTTP(out, request)
			if out.Code != tt.want || (out.Body.String() == "numbers") != (tt.want == http.StatusOK) {
				t.Errorf("%d %q, want %d", out.Code, out.Body, tt.want)
			}
		})
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	client, err := cri.New(cri.Config{Endpoint: runtime.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ready := &readiness{}
	get := func(path string) (int, string) {
		out := httptest.NewRecorder()
		ready.handler().ServeHTTP(out, httptest.NewRequest(http.MethodGet, path, nil))
		return out.Code, out.Body.String()
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("not healthy before the runtime is found: %d", code)
	}
	if code, why := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(why, "caches") {
		t.Errorf("before the caches are filled: %d %s", code, why)
	}
	ready.synced()
	if code, why := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(why, "runtime") {
		t.Errorf("before the runtime answered: %d %s", code, why)
	}
	ready.callRuntime(t.Context(), client)
	if code, why := get("/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d %s", code, why)
	}
	if err := ready.check(time.Now().Add(time.Minute)); err == nil {
		t.Error("ready a minute after the runtime's last answer")
	}
}

// What is not there is looked for again until the context ends.
func TestRetryEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	roots := []string{t.TempDir()}
	tried := make(chan struct{}, 1)
	group.Go(func() error {
		return wait.Retry(ctx, slog.New(slog.DiscardHandler), "find the container runtime", func() error {
			select {
			case tried <- struct{}{}:
			default:
			}
			_, err := cri.Discover("", roots)
			return err
		})
	})
	<-tried
	cancel()
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	err := Config{Node: strings.Repeat("n", 64), Addr: "nonsense", MetricsAddr: "x", PprofAddr: ":6060"}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"node name", "--addr", "--metrics-addr", "--pprof-addr", "--max-concurrent-stops", "logger"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported: %v", want, err)
		}
	}
	good := Config{Node: "node-1", Addr: ":10221", MetricsAddr: "127.0.0.1:10223", PprofAddr: "localhost:10222", MaxConcurrent: 1, MaxPulls: 1, ExecProbeCPUPercent: 25, Logger: slog.New(slog.DiscardHandler)}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
