package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/daemon/prober"
)

// metrics of the daemon, under its own registry.
type metrics struct {
	registry  *prometheus.Registry
	completed *prometheus.CounterVec
	steps     *prometheus.HistogramVec
	criCalls  *prometheus.HistogramVec
	criErrors *prometheus.CounterVec
	inFlight  prometheus.Gauge
	nudges    prometheus.Counter
	probes    *prober.Metrics
}

// Steps of a request, label "step" of refit_crr_step_duration_seconds.
const (
	stepStop  = "stop"  // preStop, TERM, grace, KILL
	stepTotal = "total" // from creation to completion
)

func newMetrics(version string) *metrics {
	seconds := []float64{.01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 30, 60, 300}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_crr_completed_total", Help: "ContainerRecreateRequests ended by this daemon, by result (succeeded, failed) and reason.",
		}, []string{"result", "reason"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "refit_crr_step_duration_seconds", Help: "Duration of the steps of ContainerRecreateRequests: stop of one container, total from creation to completion.", Buckets: seconds,
		}, []string{"step"}),
		criCalls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "refit_cri_call_duration_seconds", Help: "Duration of calls to the container runtime, by CRI method.", Buckets: seconds,
		}, []string{"method"}),
		criErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_cri_errors_total", Help: "Failed calls to the container runtime, by CRI method.",
		}, []string{"method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_crr_acts_in_flight", Help: "Stops and starts of containers under way.",
		}),
		nudges: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "refit_crr_nudges_total", Help: "Times kubelet was woken by touching a pod's annotation.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "refit_build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": version, "program": "refit-daemon"},
	})
	build.Set(1)
	m.registry.MustRegister(m.completed, m.steps, m.criCalls, m.criErrors, m.inFlight, m.nudges, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.probes = prober.NewMetrics(m.registry)
	return m
}

func (m *metrics) criCall(method string, took time.Duration, err error) {
	m.criCalls.WithLabelValues(method).Observe(took.Seconds())
	if err != nil {
		m.criErrors.WithLabelValues(method).Inc()
	}
}

func (m *metrics) ended(status crr.Status, took time.Duration) {
	result, reason := crr.Result(status)
	m.completed.WithLabelValues(result, reason).Inc()
	m.steps.WithLabelValues(stepTotal).Observe(took.Seconds())
}
