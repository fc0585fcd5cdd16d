package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/plugin/config"
)

const (
	// initTimeout bounds Init, and thereby how long one plugin can delay the next at start.
	initTimeout = 30 * time.Second

	firstRestart = time.Second
	lastRestart  = time.Minute
	// awaitLimit bounds how long a plugin that waits for values of the pod delays readiness, for example during an outage
	// of the API server.
	awaitLimit = 5 * time.Minute
	// stableTime is how long a plugin must run until its restarts are reset.
	stableTime = time.Minute
)

// Values of restartPolicy.
const (
	Always    = "Always"
	OnFailure = "OnFailure"
	Never     = "Never"
)

// Status of a plugin.
type Status struct {
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	Running  bool      `json:"running"`
	Since    time.Time `json:"since"` // since when Running has its value
	Restarts int       `json:"restarts"`
	// LastError is why the plugin ended last.
	LastError string `json:"lastError,omitempty"`
	Health
}

// unit is one configured plugin and the goroutine that keeps it running.
type unit struct {
	spec     config.Plugin
	factory  Factory
	manager  *Manager
	cancel   context.CancelFunc
	done     chan struct{}
	initDone chan struct{} // closed when the first Init has returned

	mu       sync.Mutex
	plugin   Plugin
	routes   map[string]http.Handler
	registry *prometheus.Registry
	status   Status
}

func (m *Manager) newUnit(ctx context.Context, spec config.Plugin, factory Factory) *unit {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // stop ends it
	u := &unit{
		spec: spec, factory: factory, manager: m, cancel: cancel,
		done: make(chan struct{}), initDone: make(chan struct{}), registry: prometheus.NewRegistry(),
		status: Status{Name: spec.Name, Since: time.Now()},
	}
	u.renew()
	if spec.Awaits != nil { // until a configuration with these values is loaded
		u.status.LastError = "waiting for values of the pod: " + spec.Awaits.Error()
		m.config.Host.Logger.Warn("plugin not started, the others are: it waits for values of the pod", "plugin", spec.Name, "err", spec.Awaits)
		close(u.initDone)
		close(u.done)
		return u
	}
	go u.run(ctx)
	return u
}

// renew creates a new plugin.
func (u *unit) renew() {
	p := u.factory()
	registry := prometheus.NewRegistry()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plugin, u.registry = p, registry
	u.status.Version = p.Version()
	u.routes = nil
	if s, ok := p.(Server); ok {
		u.routes = s.Routes()
	}
}

// run keeps the plugin running according to the restart policy.
func (u *unit) run(ctx context.Context) {
	defer close(u.done)
	backoff := wait.Backoff{First: firstRestart, Last: lastRestart}
	for {
		started := time.Now()
		err := u.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > stableTime {
			backoff.Reset()
		}
		u.report(err)
		policy := u.manager.policy()
		if policy == Never || policy == OnFailure && err == nil {
			return
		}
		if wait.For(ctx, backoff.Next()) != nil {
			return
		}
		u.mu.Lock()
		u.status.Restarts++
		u.mu.Unlock()
		u.renew()
		u.manager.remount()
	}
}

// once runs the plugin until it ends.
func (u *unit) once(ctx context.Context) error {
	u.mu.Lock()
	p, host := u.plugin, u.manager.config.Host
	host.Metrics = u.registry
	u.mu.Unlock()
	host.Logger = host.Logger.With("plugin", u.spec.Name)
	err := u.safely(func() error {
		ctx, cancel := context.WithTimeout(ctx, initTimeout)
		defer cancel()
		return p.Init(ctx, u.spec.Config, host)
	})
	u.setRunning(err == nil)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	defer u.setRunning(false)
	return u.safely(func() error { return p.Start(ctx) })
}

func (u *unit) setRunning(running bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.status.Running != running {
		u.status.Running, u.status.Since = running, time.Now()
	}
	select {
	case <-u.initDone:
	default:
		close(u.initDone)
	}
}

func (u *unit) safely(do func() error) error {
	return Safely(u.manager.config.Host.Guard, u.spec.Name, do)
}

// report logs and records why the plugin ended.
func (u *unit) report(err error) {
	why := "ended without being asked to"
	if err != nil {
		why = err.Error()
	}
	u.mu.Lock()
	u.status.LastError = foreign.Cut(why, result.MaxMessage)
	u.mu.Unlock()
	logger := u.manager.config.Host.Logger.With("plugin", u.spec.Name)
	logger.Error("plugin ended", "err", why)
	if tell := u.manager.config.Host.Tell; tell != nil {
		tell(result.Failed, "PluginFailed", "plugin "+u.spec.Name+": "+why)
	}
}

// stop ends the plugin, at the latest when ctx ends: then its context is cancelled without waiting for it.
func (u *unit) stop(ctx context.Context) error {
	u.mu.Lock()
	p, running := u.plugin, u.status.Running
	u.mu.Unlock()
	var err error
	if running {
		stopped := make(chan error, 1)
		go func() { stopped <- u.safely(func() error { return p.Stop(ctx) }) }()
		select {
		case err = <-stopped:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	u.cancel()
	select {
	case <-u.done:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("still running: %w", ctx.Err()))
	}
	if err != nil {
		return fmt.Errorf("stop plugin %s: %w", u.spec.Name, err)
	}
	return nil
}

func (u *unit) snapshot() Status {
	u.mu.Lock()
	status, p := u.status, u.plugin
	u.mu.Unlock()
	if !status.Running {
		status.Health = Health{Message: status.LastError}
		return status
	}
	err := u.safely(func() error {
		status.Health = p.Status()
		return nil
	})
	if err != nil {
		status.Health = Health{Message: err.Error()}
	}
	return status
}

// ready reports whether the pod's readiness need not wait for the plugin.
func (u *unit) ready() bool {
	u.mu.Lock()
	p, running, since := u.plugin, u.status.Running, u.status.Since
	u.mu.Unlock()
	r, ok := p.(Readier)
	return !ok || running && r.Ready() || u.spec.Awaits != nil && time.Since(since) >= awaitLimit
}

// needs returns the needs of the running plugin.
func (u *unit) needs() Needs {
	u.mu.Lock()
	p, running := u.plugin, u.status.Running
	u.mu.Unlock()
	if n, ok := p.(Needer); ok && running {
		return n.Needs()
	}
	return Needs{}
}

// serve handles one route of the plugin with its current instance.
func (u *unit) serve(pattern string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		handler, running := u.routes[pattern], u.status.Running
		u.mu.Unlock()
		if !running || handler == nil {
			http.Error(w, "plugin "+u.spec.Name+" is not running", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// Safely calls a function and converts a panic to an error, which the guard counts and logs with its stack. A plugin calls
// the functions of its own goroutines through it: a panic in one plugin must not stop the others. name is the plugin's
// name.
func Safely(g *guard.Guard, name string, do func() error) error {
	return g.Do("plugin", guard.Named(guard.Object{Kind: "Plugin", Name: name}), do)
}

// Go runs a function in a group; a panic ends the group with an error.
func Go(g *guard.Guard, name string, group *errgroup.Group, do func() error) {
	group.Go(func() error { return Safely(g, name, do) })
}
