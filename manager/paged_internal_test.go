package manager

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/manager/certificates"
)

func TestListsOfTheManagerAreReadInPages(t *testing.T) { //nolint:paralleltest // the registry of metrics is a variable of controller-runtime
	registry := metrics.Registry
	t.Cleanup(func() { metrics.Registry = registry })
	metrics.Registry = prometheus.NewRegistry()
	var limits []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
		switch {
		case r.URL.Path == "/api":
			answer = `{"kind":"APIVersions","versions":["v1"]}`
		case r.URL.Path == "/api/v1":
			answer = `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
				`{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]},{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list"]}]}`
		case strings.HasSuffix(r.URL.Path, "/pods"):
			limits = append(limits, r.URL.Query().Get("limit"))
			answer = `{"kind":"PodList","apiVersion":"v1","items":[]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	cfg := Config{Namespace: "refit-system", MetricsAddr: "0", Logger: slog.New(slog.DiscardHandler)}
	loader := certificates.NewLoader(certificates.Config{Namespace: cfg.Namespace, Secret: "webhook", Clock: time.Now, Logger: cfg.Logger})
	mgr, _, err := newManager(&rest.Config{Host: server.URL}, cfg, loader, webhook.NewServer(webhook.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.GetAPIReader().List(t.Context(), &corev1.PodList{}, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if len(limits) != 1 || limits[0] != "20" {
		t.Errorf("limits %q", limits)
	}
}
