// Package metrics counts what the plugin hot_update does.
//
// It contains: the metrics, and how an outcome changes them. Updates themselves must stay out.
package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/hotupdate"
)

// Metrics are the metrics of one plugin.
type Metrics struct {
	total    *prometheus.CounterVec
	last     prometheus.Gauge
	success  prometheus.Gauge
	duration prometheus.Histogram
	// altered counts files that another process has changed. unrestored reports whether files of the workload are missing.
	altered    prometheus.Counter
	unrestored prometheus.Gauge
}

// New creates metrics without registering them.
func New() *Metrics {
	return &Metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_sidecar_hot_updates_total", Help: "Updates by how they ended: accepted, unchanged, failed, rolled_back.",
		}, []string{"result"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_sidecar_hot_update_last_successful", Help: "1 if the last update succeeded.",
		}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_sidecar_hot_update_last_success_timestamp_seconds", Help: "When an update was accepted last.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "refit_sidecar_hot_update_duration_seconds", Help: "From the request to its end.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300},
		}),
		altered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "refit_sidecar_hot_update_altered_files_total", Help: "Files that were not what had been accepted when an update was to keep them.",
		}),
		unrestored: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_sidecar_hot_update_unrestored", Help: "1 while the workload has accepted a revision that this pod could not restore.",
		}),
	}
}

// Register registers all metrics.
func (m *Metrics) Register(to prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{m.total, m.last, m.success, m.duration, m.altered, m.unrestored} {
		errs = append(errs, to.Register(c))
	}
	return errors.Join(errs...)
}

// Observe counts an update by its outcome.
func (m *Metrics) Observe(took time.Duration, res hotupdate.Result, err error) {
	m.duration.Observe(took.Seconds())
	m.altered.Add(float64(len(res.Mended)))
	if errors.Is(err, hotupdate.ErrTampered) {
		m.altered.Inc()
	}
	var failure *hotupdate.Failure
	switch {
	case errors.As(err, &failure) && failure.RolledBack:
		m.total.WithLabelValues("rolled_back").Inc()
	case err != nil:
		m.total.WithLabelValues("failed").Inc()
	case res.Changed:
		m.total.WithLabelValues("accepted").Inc()
	default:
		m.total.WithLabelValues("unchanged").Inc()
	}
	if err != nil {
		m.last.Set(0)
		return
	}
	m.last.Set(1)
	m.success.SetToCurrentTime()
}

// Unrestored sets whether the workload has accepted a revision that this pod could not restore.
func (m *Metrics) Unrestored(is bool) {
	m.unrestored.Set(0)
	if is {
		m.unrestored.Set(1)
	}
}
