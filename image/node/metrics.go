package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/image"
)

// metrics are the metrics of image pulls.
type metrics struct {
	pulls   *prometheus.CounterVec
	seconds prometheus.Histogram
	writes  *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		pulls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_image_pulls_total", Help: "Images of the NodeImage that were pulled or not, by phase (Succeeded, Failed).",
		}, []string{"phase"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "refit_image_pull_duration_seconds", Help: "How long pulls took that succeeded, with the time between attempts.",
			Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800},
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_image_status_writes_total", Help: "Writes of the NodeImage's status, by result (ok, error).",
		}, []string{"result"}),
	}
	registry.MustRegister(m.pulls, m.seconds, m.writes)
	return m
}

func (m *metrics) ended(state image.State) {
	m.pulls.WithLabelValues(string(state.Phase)).Inc()
	if state.ImageID != "" && !state.Started.IsZero() {
		m.seconds.Observe(state.Completed.Sub(state.Started).Seconds())
	}
}

func (m *metrics) wrote(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(result).Inc()
}
