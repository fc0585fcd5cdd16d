package manager_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/refit-project/refit/manager"
	"github.com/refit-project/refit/test/kit/logbuffer"
	"github.com/refit-project/refit/test/kit/loopback"
	"github.com/refit-project/refit/test/kit/poll"
)

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// A manager that starts while the API server cannot be reached is alive but not ready, and continues as soon as it can be reached.
func TestManagerWaitsForTheAPIServer(t *testing.T) { //nolint:paralleltest // the manager sets the loggers of libraries
	away, log := loopback.Address(t), &logbuffer.Buffer{}
	config := manager.Config{
		Kubeconfig: kubeconfig(t, "http://"+away), Namespace: "refit-system", OpenKruiseNamespace: "kruise-system", WebhookPort: 9443, CertSecret: "cert", MetricsAddr: "0",
		HealthAddr: loopback.Address(t), Workers: 1, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, config) }()
	poll.Until(t, "alive", func() bool { code, _ := get(t, "http://"+config.HealthAddr+"/healthz"); return code == http.StatusOK })
	poll.Until(t, "a log line", func() bool { return strings.Contains(log.String(), "connection refused") })
	if code, body := get(t, "http://"+config.HealthAddr+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "API server") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	select {
	case err := <-ended:
		t.Fatalf("the manager has ended: %v", err)
	default:
	}

	asked := make(chan string, 100)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", away)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		select {
		case asked <- in.URL.Path:
		default:
		}
		out.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(in.URL.Path, "/selfsubjectreviews") {
			out.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "system:refit"}}})
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	first := <-asked
	if second := <-asked; !strings.HasSuffix(first, "/selfsubjectreviews") || second == first {
		t.Errorf("asked for %s, then %s", first, second)
	}
	stop()
	t.Logf("the manager, whose API server only knows its name, ended with %v", <-ended)
}

func TestManagerThatIsStoppedWhileItWaitsEndsWithoutError(t *testing.T) { //nolint:paralleltest // the manager sets the loggers of libraries
	config := manager.Config{
		Kubeconfig: kubeconfig(t, "http://"+loopback.Address(t)), Namespace: "refit-system", OpenKruiseNamespace: "kruise-system", WebhookPort: 9443, CertSecret: "cert", MetricsAddr: "0",
		HealthAddr: loopback.Address(t), Workers: 1, Logger: slog.New(slog.DiscardHandler),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, config) }()
	poll.Until(t, "alive", func() bool { code, _ := get(t, "http://"+config.HealthAddr+"/healthz"); return code == http.StatusOK })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
