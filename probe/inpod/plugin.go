package inpod

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

// Name is the name of the plugin in the configuration.
const Name = "pod_probe"

// Reason is the reason of the conditions that the plugin writes. It identifies conditions whose probe has been removed,
// also for the next sidecar of the pod.
const Reason = "ProbedBySidecar"

// Config is the configuration of the plugin. It is empty, because everything is in the annotation.
type Config struct{}

// Plugin implements plugin.Plugin.
type Plugin struct {
	host plugin.Host

	mu     sync.Mutex
	errs   error
	latest map[string]probe.Result
	// stale are the conditions that are being removed. Only Start uses it.
	stale map[string]bool
}

// New is the factory of the plugin.
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

// Stop implements plugin.Plugin. There is no work in progress to finish.
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
	health := plugin.Health{Healthy: p.errs == nil, Info: info}
	if p.errs != nil {
		health.Message = p.errs.Error()
	}
	return health
}

// activeProbe is a probe of the annotation with its worker.
type activeProbe struct {
	wanted wanted
	worker *probe.Worker // nil while the container does not run
	since  int64         // when the last instance that was probed started; 0 before the first one
	ip     string
}

// Start implements plugin.Plugin. It keeps a worker for each probe in the current annotation.
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

// reconcile starts, changes and stops workers until they match the annotation.
func (p *Plugin) reconcile(ctx context.Context, pod *corev1.Pod, at map[string]*activeProbe) {
	all, errs := parse(pod.Annotations[Annotation], p.host.Pod)
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
			errs = errors.Join(errs, fmt.Errorf("probe %s: %w", foreign.Shorten(w.Name, maxError), err))
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
	if errs != nil && (p.errs == nil || p.errs.Error() != errs.Error()) {
		p.host.Logger.Warn("annotation "+Annotation, "err", errs)
	}
	p.errs = errs
	p.mu.Unlock()
}

// removeStale removes conditions whose probe is no longer in the annotation.
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
		// A container that has never started has no result: for Failed the manager would apply the marker's policy.
		if status := kubelet.StatusOf(pod, a.wanted.ContainerName); status != nil && (a.since != 0 || hasStarted(status)) {
			// The message of kruise-daemon.
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
	spec.Guard, spec.Subject = p.host.Guard, guard.Of(pod)
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

// report writes the condition. If there is no result, the condition is Unknown, and not False as for a failed probe:
// for False a manager applies the policy that the marker has for the state Failed.
func (p *Plugin) report(w wanted, r probe.Result) {
	p.mu.Lock()
	p.latest[w.key()] = r
	p.mu.Unlock()
	target := output.Condition{Object: output.Pod(p.host.Pod), Type: w.PodConditionType, Reason: Reason}
	p.host.Results.Put(source(w.key()), []output.Output{target}, endpoint.Entry(r))
}
