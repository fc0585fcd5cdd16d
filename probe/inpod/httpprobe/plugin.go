package httpprobe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

// Name is the name of the plugin in the configuration.
const Name = "http_probe"

// Plugin implements plugin.Plugin.
type Plugin struct {
	host   plugin.Host
	probes []probed
	total  *prometheus.CounterVec

	mu     sync.Mutex
	latest map[string]endpoint.Latest
}

// probed is an endpoint with its prober.
type probed struct {
	name    string
	spec    probe.Spec
	outputs []output.Output
	// processes says that the probe needs to see the processes of the pod.
	processes bool
}

// New is the factory of the plugin.
func New() plugin.Plugin { return &Plugin{latest: map[string]endpoint.Latest{}} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return "v1.0.0" }

// ConfigType implements plugin.Plugin.
func (p *Plugin) ConfigType() any { return &Config{} }

// Init implements plugin.Plugin.
func (p *Plugin) Init(_ context.Context, c any, host plugin.Host) error {
	own, ok := c.(*Config)
	if !ok {
		return fmt.Errorf("configuration of type %T", c)
	}
	p.host = host
	p.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_sidecar_probe_results_total", Help: "Probes by endpoint and the state they left it in.",
	}, []string{"endpoint", "state"})
	errs := []error{host.Metrics.Register(p.total)}
	where := config.NewWhere(host.Observed(), host.Pod, "Probe")
	for i := range own.Endpoints {
		e := &own.Endpoints[i]
		spec, err := e.Spec(own.Times, host)
		errs = append(errs, err)
		if e.Process != nil && host.Processes == nil {
			errs = append(errs, errors.New("processes cannot be seen here"))
		}
		var outputs []output.Output
		if len(e.StorageConfig) > 0 {
			outputs, err = config.Outputs(e.StorageConfig, where)
			errs = append(errs, err)
		}
		p.probes = append(p.probes, probed{e.Title(), spec, outputs, e.Process != nil})
	}
	return errors.Join(errs...)
}

// Start implements plugin.Plugin. It starts a worker for every endpoint.
func (p *Plugin) Start(ctx context.Context) error {
	var workers []*probe.Worker
	defer func() {
		for _, w := range workers {
			w.Stop()
		}
		for _, a := range p.probes {
			p.host.Results.Drop(p.source(a.name))
		}
	}()
	for _, a := range p.probes {
		w, err := probe.Start(ctx, a.spec, func(r probe.Result) { p.report(a, r) })
		if err != nil {
			return fmt.Errorf("endpoint %s: %w", a.name, err)
		}
		workers = append(workers, w)
	}
	<-ctx.Done()
	return nil
}

func (p *Plugin) source(name string) string { return Name + "/" + name }

// report passes on a result. Package result finds out whether it has changed.
func (p *Plugin) report(a probed, r probe.Result) {
	p.mu.Lock()
	before := p.latest[a.name].State
	p.latest[a.name] = endpoint.NewLatest(r)
	p.mu.Unlock()
	if before != r.State {
		// The message can be text from the application, which must not be logged.
		p.host.Logger.Info("probe state changed", "endpoint", a.name, "state", r.State)
	}
	p.total.WithLabelValues(a.name, string(r.State)).Inc()
	if len(a.outputs) > 0 {
		p.host.Results.Put(p.source(a.name), a.outputs, endpoint.Entry(r))
	}
}

// Stop implements plugin.Plugin. There is no work in progress to finish.
func (p *Plugin) Stop(context.Context) error { return nil }

// Status implements plugin.Plugin. A failing probe does not make the plugin unhealthy.
func (p *Plugin) Status() plugin.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := make(map[string]endpoint.Latest, len(p.latest))
	for name, l := range p.latest {
		info[name] = l
	}
	return plugin.Health{Healthy: true, Message: fmt.Sprintf("%d endpoints", len(p.probes)), Info: info}
}

// Needs implements plugin.Needer.
func (p *Plugin) Needs() plugin.Needs {
	var needs plugin.Needs
	for _, a := range p.probes {
		needs.Access = append(needs.Access, plugin.NeedsOf(a.outputs)...)
		needs.Signals = needs.Signals || a.processes
	}
	return needs
}
