package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics of the process and of its calls to the container runtime. The other packages register their own.
type metrics struct {
	registry  *prometheus.Registry
	criCalls  *prometheus.HistogramVec
	criErrors *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		criCalls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "refit_cri_call_duration_seconds", Help: "Duration of calls to the container runtime, by CRI method.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 30, 60, 300},
		}, []string{"method"}),
		criErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_cri_errors_total", Help: "Failed calls to the container runtime, by CRI method.",
		}, []string{"method"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "refit_build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": version, "program": component},
	})
	build.Set(1)
	m.registry.MustRegister(m.criCalls, m.criErrors, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) criCall(method string, took time.Duration, err error) {
	m.criCalls.WithLabelValues(method).Observe(took.Seconds())
	if err != nil {
		m.criErrors.WithLabelValues(method).Inc()
	}
}
