package report

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	completed *prometheus.CounterVec
	steps     *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	touches   prometheus.Counter
}

// Values of the label "step" of refit_crr_step_duration_seconds.
const (
	stepStop  = "stop"  // preStop, TERM, grace period, KILL
	stepTotal = "total" // from creation to completion
)

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_crr_completed_total", Help: "ContainerRecreateRequests ended by this daemon, by result (succeeded, failed) and reason.",
		}, []string{"result", "reason"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "refit_crr_step_duration_seconds", Help: "Duration of the steps of ContainerRecreateRequests: stop of one container, total from creation to completion.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 30, 60, 300},
		}, []string{"step"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_crr_acts_in_flight", Help: "Stops and starts of containers under way.",
		}),
		touches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "refit_crr_nudges_total", Help: "Times kubelet was made to look at a pod by an annotation of the pod.",
		}),
	}
	registry.MustRegister(m.completed, m.steps, m.inFlight, m.touches)
	return m
}
