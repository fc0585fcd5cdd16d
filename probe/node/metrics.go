package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/turns"
)

// metrics are the metrics of the probes.
type metrics struct {
	results  *prometheus.CounterVec
	lateness prometheus.Histogram
	inFlight prometheus.Gauge
	running  prometheus.Gauge
	delay    prometheus.Gauge
	ignored  prometheus.Gauge
	writes   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_probe_results_total", Help: "Answers to pod probes, by type (exec, http, tcp, grpc) and result before thresholds (Succeeded, Failed, Unknown, none).",
		}, []string{"type", "result"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "refit_probe_lateness_seconds", Help: "How long after its time a pod probe was started.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "refit_probes_in_flight", Help: "Pod probes that wait for their answer."}),
		running:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "refit_probes", Help: "Pod probes at work: those whose container runs."}),
		delay: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_exec_probe_delay_ratio", Help: "How many times longer than their periods exec probes take from one run to the next, as in the condition Delayed; 0: they are on time.",
		}),
		ignored: prometheus.NewGauge(prometheus.GaugeOpts{Name: "refit_probes_ignored", Help: "Faults of the NodePodProbe's spec for which a probe is not run; each has an Event."}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_probe_status_writes_total", Help: "Writes of the NodePodProbe's status, by result (ok, error).",
		}, []string{"result"}),
	}
	registry.MustRegister(m.results, m.lateness, m.inFlight, m.running, m.delay, m.ignored, m.writes)
	return m
}

// watch registers the gauges for the turns of exec probes.
func (*metrics) watch(registry prometheus.Registerer, queue *turns.Queue) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "refit_exec_probes_limit", Help: "How many commands of exec probes may run at the same time, which follows by how much they slow each other down.",
		}, func() float64 { return float64(queue.Load().Limit) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "refit_exec_probes_running", Help: "Commands of exec probes that run.",
		}, func() float64 { return float64(queue.Load().Running) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "refit_exec_probes_waiting", Help: "Exec probes that are due and wait for their turn.",
		}, func() float64 { return float64(queue.Load().Waiting) }),
	)
}

func (m *metrics) late(d time.Duration) { m.lateness.Observe(d.Seconds()) }

// wrote counts writes of the status.
func (m *metrics) wrote(_ string, sent result.Requests, err error) {
	switch {
	case sent.Writes == 0:
	case err != nil:
		m.writes.WithLabelValues("error").Inc()
	default:
		m.writes.WithLabelValues("ok").Inc()
	}
}

// counted is a Prober that counts its outcomes.
type counted struct {
	probe.Prober
	kind    string
	metrics *metrics
}

// Close closes the wrapped prober.
func (c counted) Close() error {
	probe.Close(c.Prober)
	return nil
}

// Probe implements probe.Prober.
func (c counted) Probe(ctx context.Context) probe.Outcome {
	c.metrics.inFlight.Inc()
	defer c.metrics.inFlight.Dec()
	outcome := c.Prober.Probe(ctx)
	answer := string(outcome.State)
	if answer == "" {
		answer = "none"
	}
	c.metrics.results.WithLabelValues(c.kind, answer).Inc()
	return outcome
}
