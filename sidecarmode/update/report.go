package update

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/result/output"
)

// conclude tells how an update ended: log, metric, and wherever the configuration says.
func (p *Plugin) conclude(version string, began time.Time, res hotupdate.Result, err error) {
	entry := result.Entry{State: result.Succeeded, Value: version + ": Update success", Message: version + ": Update success", At: time.Now()}
	s := summary{Version: version, Phase: hotupdate.Accepted, Digest: res.Revision.Digest, Time: time.Now().UTC().Format(time.RFC3339)}
	if err != nil {
		entry.State = result.Failed
		entry.Value = version + ": Update failed: " + err.Error()
		entry.Message = entry.Value
		s.Phase, s.Error, s.Digest = hotupdate.Failed, result.Cut(err.Error(), result.MaxMessage), ""
		var failure *hotupdate.Failure
		if errors.As(err, &failure) {
			s.RolledBack = failure.RolledBack
		}
		p.host.Logger.Error("update failed", "version", version, "err", err)
	} else {
		p.host.Logger.Info("update accepted", "version", version, "changed", res.Changed, "digest", res.Revision.Digest)
	}
	p.metrics.observe(time.Since(began), res.Changed, err)
	p.put(entry, s, res.Changed || err != nil)
}

// put passes an outcome to the result writer. Nothing waits for that.
func (p *Plugin) put(entry result.Entry, s summary, changed bool) {
	if len(p.outputs) > 0 {
		p.host.Results.Put(Name, p.outputs, entry)
	}
	if p.config.DetailAnnotationKey != "" && changed {
		if b, err := json.Marshal(s); err == nil {
			detail := entry
			detail.Value = string(b)
			p.host.Results.Put(Name+"/detail", []output.Output{
				output.Annotation{Object: output.Pod(p.host.Pod), Key: p.config.DetailAnnotationKey},
			}, detail)
		}
	}
}

// metrics of the plugin.
type metrics struct {
	total    *prometheus.CounterVec
	last     prometheus.Gauge
	success  prometheus.Gauge
	duration prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
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
	}
}

func (m *metrics) register(to prometheus.Registerer) error {
	var faults []error
	for _, c := range []prometheus.Collector{m.total, m.last, m.success, m.duration} {
		faults = append(faults, to.Register(c))
	}
	return errors.Join(faults...)
}

func (m *metrics) observe(took time.Duration, changed bool, err error) {
	m.duration.Observe(took.Seconds())
	var failure *hotupdate.Failure
	switch {
	case errors.As(err, &failure) && failure.RolledBack:
		m.total.WithLabelValues("rolled_back").Inc()
	case err != nil:
		m.total.WithLabelValues("failed").Inc()
	case changed:
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

// summary is the outcome as JSON, for the annotation.
type summary struct {
	Version    string          `json:"version"`
	Phase      hotupdate.Phase `json:"phase"`
	Digest     string          `json:"digest,omitempty"`
	Error      string          `json:"error,omitempty"`
	RolledBack bool            `json:"rolledBack,omitempty"`
	Time       string          `json:"time"`
}
