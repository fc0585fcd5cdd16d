package manager

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/internal/tracing"
)

// Each flag switches its controllers and webhooks, and no others. A webhook that is switched off allows everything or is not
// served, so that objects are left to a kruise-manager.
func TestFlagsSwitchControllersAndWebhooks(t *testing.T) { //nolint:paralleltest // the registry of metrics is a variable of controller-runtime
	for name, tc := range map[string]struct { //nolint:paralleltest // as above
		edit        func(*Config)
		controllers []string
		webhooks    []string // that refuse an object that cannot be read
	}{
		"none": {edit: func(*Config) {}},
		"container-recreate-requests": {
			edit:        func(c *Config) { c.ContainerRecreateRequests = true },
			controllers: []string{"jobend", "lifecycle", "readiness"}, webhooks: []string{"/mutate-apps-kruise-io-containerrecreaterequest"},
		},
		"pod-probes": {
			edit:        func(c *Config) { c.PodProbes = true },
			controllers: []string{"podprobe-marker", "podprobe-node", "podprobe-pod"},
		},
		"images": {
			edit:        func(c *Config) { c.Images = true },
			controllers: []string{"imagelistpulljob", "imagepulljob", "nodeimage", "pullsecretcopy"},
		},
		"sidecar-sets":       {edit: func(c *Config) { c.SidecarSets = true }, webhooks: []string{"/mutate-apps-kruise-io-sidecarset"}},
		"sidecarset-rollout": {edit: func(c *Config) { c.SidecarSetRollout = true }, controllers: []string{"sidecarset"}},
		"restart-rollouts": {
			edit:        func(c *Config) { c.RestartRollouts = true },
			controllers: []string{"restartrollout", "restartschedule"},
			webhooks:    []string{"/mutate-refit-dev-restartrollout", "/mutate-refit-dev-restartschedule"},
		},
		"in-place-updates": {edit: func(c *Config) { c.InPlaceUpdates = true }, controllers: []string{"inplaceupdatepolicy"}},
		"restart-rollouts and restart-on-config-change": {
			edit:        func(c *Config) { c.RestartRollouts, c.ConfigChanges = true, true },
			controllers: []string{"restartrollout", "restartschedule", "restarttrigger"},
			webhooks:    []string{"/mutate-refit-dev-restartrollout", "/mutate-refit-dev-restartschedule"},
		},
		"restart-on-config-change alone": {edit: func(c *Config) { c.ConfigChanges = true }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Namespace: "refit-system", Workers: 1, PullSecretNamespace: "pulls", Logger: slog.New(slog.DiscardHandler)}
			tc.edit(&cfg)
			m := addedFor(t, cfg)
			if diff := cmp.Diff(tc.controllers, m.controllers()); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
			if name == "none" && len(m.added) > 0 {
				t.Errorf("%d things run", len(m.added))
			}
			var refusing []string
			for _, path := range []string{
				"/mutate-apps-kruise-io-containerrecreaterequest", "/mutate-apps-kruise-io-sidecarset",
				"/mutate-refit-dev-restartrollout", "/mutate-refit-dev-restartschedule",
			} {
				if m.refuses(t, path) {
					refusing = append(refusing, path)
				}
			}
			if diff := cmp.Diff(tc.webhooks, refusing); diff != "" {
				t.Errorf("webhooks (-want +got):\n%s", diff)
			}
		})
	}
}

// recordingManager records what is added to a manager that is never started.
type recordingManager struct {
	ctrl.Manager
	mux   *http.ServeMux
	log   bytes.Buffer
	added []ctrlmanager.Runnable
}

func (m *recordingManager) Add(runnable ctrlmanager.Runnable) error {
	m.added = append(m.added, runnable)
	return m.Manager.Add(runnable)
}

// addedFor adds what a configuration asks for to a manager without an API server.
func addedFor(t *testing.T, cfg Config) *recordingManager {
	t.Helper()
	registry := metrics.Registry
	t.Cleanup(func() { metrics.Registry = registry })
	metrics.Registry = prometheus.NewRegistry()
	types, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	m := &recordingManager{mux: http.NewServeMux()}
	m.Manager, err = ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: types, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: m.mux}),
		Logger: logr.FromSlogHandler(slog.NewJSONHandler(&m.log, nil)), Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	traces, err := tracing.New(t.Context(), tracing.Options{}, Name, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := addConcerns(m, cfg, nil, traces, "refit", time.Now); err != nil {
		t.Fatal(err)
	}
	return m
}

// controllers are the names of those that were added, as their loggers have them.
func (m *recordingManager) controllers() []string {
	var names []string
	for _, runnable := range m.added {
		named, ok := runnable.(interface{ GetLogger() logr.Logger })
		if !ok {
			continue
		}
		m.log.Reset()
		named.GetLogger().Info("added")
		var line struct{ Controller string }
		if err := json.Unmarshal(m.log.Bytes(), &line); err != nil {
			line.Controller = err.Error()
		}
		names = append(names, line.Controller)
	}
	slices.Sort(names)
	return names
}

// refuses reports whether a webhook is served that refuses an object that cannot be read.
func (m *recordingManager) refuses(t *testing.T, path string) bool {
	t.Helper()
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","object":{"spec":"none"}}}`
	question := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(review))
	question.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	m.mux.ServeHTTP(answer, question)
	return answer.Code == http.StatusOK && strings.Contains(answer.Body.String(), `"allowed":false`)
}
