package podprobe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/endpoint"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// Name of the plugin in the configuration.
const Name = "pod_probe"

// Reason of the conditions that are written here. They are known by it when their probe has gone, also to the next sidecar of
// the pod.
const Reason = "ProbedBySidecar"

// Config of the plugin: there is nothing to configure, everything is in the annotation.
type Config struct{}

// Plugin implements plugin.Plugin.
type Plugin struct {
	host plugin.Host

	mu     sync.Mutex
	faults error
	latest map[string]probe.Result
	// stale are the conditions that are being removed, of Start alone.
	stale map[string]bool
}

// New is the plugin's Factory.
func New() plugin.Plugin { return &Plugin{latest: map[string]probe.Result{}} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return "v1.0.0" }

// ConfigType implements plugin.Plugin.
func (p *Plugin) ConfigType() any { return &Config{} }

// Init implements plugin.Plugin.
func (p *Plugin) Init(_ context.Context, _ any, host plugin.Host) error {
	if host.API == nil {
		return errors.New("no API server: the annotation cannot be read")
	}
	p.host = host
	return nil
}

// Stop implements plugin.Plugin. Nothing is under way that would have to be finished.
func (p *Plugin) Stop(context.Context) error { return nil }

// Needs implements plugin.Needer.
func (p *Plugin) Needs() plugin.Needs {
	return plugin.Needs{Access: plugin.NeedsOf([]output.Output{output.Condition{Object: output.Pod(p.host.Pod), Type: "any"}})}
}

// Status implements plugin.Plugin.
func (p *Plugin) Status() plugin.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := make(map[string]endpoint.Latest, len(p.latest))
	for name, r := range p.latest {
		info[name] = endpoint.NewLatest(r)
	}
	health := plugin.Health{Healthy: p.faults == nil, Info: info}
	if p.faults != nil {
		health.Message = p.faults.Error()
	}
	return health
}

// activeProbe is a probe of the annotation with its worker.
type activeProbe struct {
	wanted wanted
	worker *probe.Worker // nil while the container does not run
	since  int64
	ip     string
}

// Start implements plugin.Plugin: it keeps a worker for each probe of the annotation as it is now.
func (p *Plugin) Start(ctx context.Context) error {
	changes, end := p.host.Changes()
	defer end()
	at := map[string]*activeProbe{}
	defer func() {
		for _, a := range at {
			a.stop()
			p.host.Results.Drop(source(a.wanted.key()))
		}
	}()
	for {
		if pod := p.host.Observed(); pod != nil {
			p.reconcile(ctx, pod, at)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

func source(key string) string { return Name + "/" + key }

// reconcile starts, changes and stops workers until they are those of the annotation.
func (p *Plugin) reconcile(ctx context.Context, pod *corev1.Pod, at map[string]*activeProbe) {
	all, faults := parse(pod.Annotations[Annotation], p.host.Pod)
	keep := map[string]bool{}
	for _, w := range all {
		keep[w.key()] = true
		a := at[w.key()]
		if a != nil && !reflect.DeepEqual(a.wanted, w) {
			a.stop()
			a = nil
		}
		if a == nil {
			a = &activeProbe{wanted: w}
			at[w.key()] = a
		}
		if err := p.adjust(ctx, pod, a); err != nil {
			faults = errors.Join(faults, fmt.Errorf("probe %s: %w", w.Name, err))
		}
	}
	for key, a := range at {
		if !keep[key] {
			a.stop()
			delete(at, key)
			p.host.Results.Drop(source(key))
			p.mu.Lock()
			delete(p.latest, key)
			p.mu.Unlock()
		}
	}
	p.removeStale(pod, keep)
	p.mu.Lock()
	if faults != nil && (p.faults == nil || p.faults.Error() != faults.Error()) {
		p.host.Logger.Warn("annotation "+Annotation, "err", faults)
	}
	p.faults = faults
	p.mu.Unlock()
}

// removeStale removes conditions whose probe is not in the annotation any more.
func (p *Plugin) removeStale(pod *corev1.Pod, keep map[string]bool) {
	before := p.stale
	p.stale = map[string]bool{}
	for _, c := range pod.Status.Conditions {
		if key := string(c.Type); c.Reason == Reason && !keep[key] {
			p.stale[key] = true
			gone := output.NoCondition{Object: output.Pod(p.host.Pod), Type: key, Reason: Reason}
			p.host.Results.Put(source(key), []output.Output{gone}, result.Entry{State: result.Unknown})
		}
	}
	for key := range before {
		if !p.stale[key] && !keep[key] {
			p.host.Results.Drop(source(key))
		}
	}
}

// adjust runs a probe while its container runs.
func (p *Plugin) adjust(ctx context.Context, pod *corev1.Pod, a *activeProbe) error {
	since, runs := running(pod, a.wanted.ContainerName)
	if !runs {
		a.stop()
		if kubelet.StatusOf(pod, a.wanted.ContainerName) != nil {
			// The words of kruise-daemon.
			p.report(a.wanted, probe.Result{State: probe.Failed, Message: "Container(" + a.wanted.ContainerName + ") is Non-running"})
		}
		return nil
	}
	if a.worker != nil && a.since == since.Unix() && a.ip == pod.Status.PodIP {
		return nil
	}
	spec, err := a.wanted.spec(pod, p.host.Own)
	if err != nil {
		p.report(a.wanted, probe.Result{State: probe.Unknown, Message: err.Error()})
		return err
	}
	spec.Since = since
	a.since, a.ip = since.Unix(), pod.Status.PodIP
	if a.worker != nil {
		return a.worker.Update(spec)
	}
	wanted := a.wanted
	a.worker, err = probe.Start(ctx, spec, func(r probe.Result) { p.report(wanted, r) })
	return err
}

func (a *activeProbe) stop() {
	if a.worker != nil {
		a.worker.Stop()
		a.worker = nil
	}
}

// report writes the condition. It is Unknown, and not False as a probe that has failed, where there is no result: a
// manager sets from False what its marker has for the state Failed.
func (p *Plugin) report(w wanted, r probe.Result) {
	p.mu.Lock()
	p.latest[w.key()] = r
	p.mu.Unlock()
	target := output.Condition{Object: output.Pod(p.host.Pod), Type: w.PodConditionType, Reason: Reason}
	p.host.Results.Put(source(w.key()), []output.Output{target}, endpoint.Entry(r))
}
