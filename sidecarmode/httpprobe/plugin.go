package httpprobe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/endpoint"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// Name of the plugin in the configuration.
const Name = "http_probe"

// Plugin implements plugin.Plugin.
type Plugin struct {
	host   plugin.Host
	probes []probed
	total  *prometheus.CounterVec

	mu     sync.Mutex
	latest map[string]endpoint.Latest
}

// probed is an endpoint that is ready to be probed.
type probed struct {
	name    string
	spec    probe.Spec
	outputs []output.Output
	// processes have to be seen.
	processes bool
}

// New is the plugin's Factory.
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
	faults := []error{host.Metrics.Register(p.total)}
	where := config.NewWhere(host.Observed(), host.Pod, "Probe")
	for i := range own.Endpoints {
		e := &own.Endpoints[i]
		spec, err := e.Spec(own.Times, host)
		faults = append(faults, err)
		if e.Process != nil && host.Processes == nil {
			faults = append(faults, errors.New("processes cannot be seen here"))
		}
		var outputs []output.Output
		if len(e.StorageConfig) > 0 {
			outputs, err = config.Outputs(e.StorageConfig, where)
			faults = append(faults, err)
		}
		p.probes = append(p.probes, probed{e.Title(), spec, outputs, e.Process != nil})
	}
	return errors.Join(faults...)
}

// Start implements plugin.Plugin: every endpoint has a worker of its own.
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

// report passes a result on. That nothing has changed is for the room result to find.
func (p *Plugin) report(a probed, r probe.Result) {
	p.mu.Lock()
	before := p.latest[a.name].State
	p.latest[a.name] = endpoint.NewLatest(r)
	p.mu.Unlock()
	if before != r.State {
		// The message can be what the program answered, which is not for the log.
		p.host.Logger.Info("probe state changed", "endpoint", a.name, "state", r.State)
	}
	p.total.WithLabelValues(a.name, string(r.State)).Inc()
	if len(a.outputs) > 0 {
		p.host.Results.Put(p.source(a.name), a.outputs, endpoint.Entry(r))
	}
}

// Stop implements plugin.Plugin. Nothing is under way that would have to be finished.
func (p *Plugin) Stop(context.Context) error { return nil }

// Status implements plugin.Plugin. A probe that fails is no fault of the plugin's.
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
