package sidecarmode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/selftest"
)

// state is the state of the whole program for /status and the metrics.
type state struct {
	version string
	manager *plugin.Manager
	meter   *meter

	registry *prometheus.Registry
	reload   prometheus.Gauge
	loaded   prometheus.Gauge
	tests    *prometheus.GaugeVec
	writes   *prometheus.CounterVec
	faults   *prometheus.CounterVec

	mu     sync.Mutex
	config configState
	report selftest.Report
}

// configState describes the configuration in force.
type configState struct {
	File   string    `json:"file"`
	Digest string    `json:"digest"`
	Loaded time.Time `json:"loaded"`
	// Error of the current file; the configuration in force is an earlier one then.
	Error string `json:"error,omitempty"`
	// Later are changed keys that need a restart.
	Later []string `json:"afterRestart,omitempty"`
}

func newState(version string, m *meter) *state {
	s := &state{
		version: version, meter: m, registry: prometheus.NewRegistry(),
		reload: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_sidecar_config_last_reload_successful", Help: "1 if the configuration file as it is now is in force.",
		}),
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_sidecar_config_last_reload_success_timestamp_seconds", Help: "When a configuration was put in force last.",
		}),
		tests: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "refit_sidecar_self_test", Help: "1 if the check passes, 0 if not; needed says whether what is configured depends on it.",
		}, []string{"check", "needed"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_sidecar_result_writes_total", Help: "Attempts to bring an object of the API up to date, by their outcome.",
		}, []string{"resource", "outcome"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_sidecar_object_panics_total", Help: "Faults of plugins and of what they run, by where and fault: panic. The log has the stack.",
		}, []string{"where", "fault"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "refit_build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": version, "program": "refit-sidecar"},
	})
	info.Set(1)
	s.registry.MustRegister(s.reload, s.loaded, s.tests, s.writes, s.faults, info, m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// observe counts the attempts to write results.
func (s *state) observe(object output.Object, sent result.Requests, err error) {
	outcome := "unchanged"
	switch {
	case err != nil:
		outcome = "failed"
	case sent.Writes > 0:
		outcome = "patched"
	}
	s.writes.WithLabelValues(object.Resource, outcome).Inc()
}

func (s *state) setConfig(c configState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Error != "" { // the previous one stays in force
		c.Digest, c.Loaded, c.Later = s.config.Digest, s.config.Loaded, s.config.Later
		s.reload.Set(0)
	} else {
		s.reload.Set(1)
		s.loaded.Set(float64(c.Loaded.Unix()))
	}
	s.config = c
}

func (s *state) setReport(r selftest.Report) {
	s.mu.Lock()
	s.report = r
	s.mu.Unlock()
	s.tests.Reset()
	for _, c := range r {
		ok := 0.0
		if c.OK {
			ok = 1
		}
		s.tests.WithLabelValues(c.Name, fmt.Sprint(c.Needed)).Set(ok)
	}
}

// health returns the handler of /healthz, /readyz and /metrics.
func (s *state) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.manager.Ready() {
			http.Error(w, "plugins are starting", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	gatherers := prometheus.Gatherers{s.registry, s.manager}
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return mux
}

// api returns the handler of /status and the plugins' routes.
func (s *state) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		answer := struct {
			Version  string          `json:"version"`
			Ready    bool            `json:"ready"`
			Config   configState     `json:"config"`
			SelfTest selftest.Report `json:"selfTest"`
			Plugins  []plugin.Status `json:"plugins"`
		}{Version: s.version, Config: s.config, SelfTest: s.report}
		s.mu.Unlock()
		answer.Ready, answer.Plugins = s.manager.Ready(), s.manager.Statuses()
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(answer) // if this fails, the client has gone
	})
	mux.Handle("/", s.manager)
	return mux
}
