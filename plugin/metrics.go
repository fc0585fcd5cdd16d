package plugin

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var (
	upDesc       = prometheus.NewDesc("refit_sidecar_plugin_up", "1 while the plugin runs and calls itself healthy.", []string{"plugin"}, nil)
	restartsDesc = prometheus.NewDesc("refit_sidecar_plugin_restarts_total", "How often the plugin was started again.", []string{"plugin"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Manager) Describe(descs chan<- *prometheus.Desc) { descs <- upDesc; descs <- restartsDesc }

// Collect implements prometheus.Collector.
func (m *Manager) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range m.Statuses() {
		up := 0.0
		if s.Running && s.Healthy {
			up = 1
		}
		metrics <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up, s.Name)
		metrics <- prometheus.MustNewConstMetric(restartsDesc, prometheus.CounterValue, float64(s.Restarts), s.Name)
	}
}

// Gather implements prometheus.Gatherer for the plugins' own metrics.
func (m *Manager) Gather() ([]*dto.MetricFamily, error) {
	m.mu.Lock()
	var gatherers prometheus.Gatherers
	for _, u := range m.units {
		u.mu.Lock()
		gatherers = append(gatherers, u.registry)
		u.mu.Unlock()
	}
	m.mu.Unlock()
	return gatherers.Gather()
}
