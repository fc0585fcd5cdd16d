package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/wait"
)

const (
	// initTimeout bounds Init, and so how long one plugin can hold up the next at start.
	initTimeout = 30 * time.Second

	firstRestart = time.Second
	lastRestart  = time.Minute
	// awaitLimit bounds how long a plugin that waits for values of the pod holds up readiness, and so how long an outage of the
	// API server does.
	awaitLimit = 5 * time.Minute
	// steady is how long a plugin must have run for its restarts to be forgotten.
	steady = time.Minute
)

// Words of restartPolicy.
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
	Since    time.Time `json:"since"` // of Running
	Restarts int       `json:"restarts"`
	// LastError is why it ended last.
	LastError string `json:"lastError,omitempty"`
	Health
}

// unit is one configured plugin and the goroutine that keeps it running.
type unit struct {
	spec    config.Plugin
	factory Factory
	manager *Manager
	cancel  context.CancelFunc
	done    chan struct{}
	begun   chan struct{} // closed when the first Init has ended

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
		done: make(chan struct{}), begun: make(chan struct{}), registry: prometheus.NewRegistry(),
		status: Status{Name: spec.Name, Since: time.Now()},
	}
	u.renew()
	if spec.Awaits != nil { // until a configuration that has them is loaded
		u.status.LastError = "waiting for values of the pod: " + spec.Awaits.Error()
		m.config.Host.Logger.Warn("plugin not started, the others are: it waits for values of the pod", "plugin", spec.Name, "err", spec.Awaits)
		close(u.begun)
		close(u.done)
		return u
	}
	go u.run(ctx)
	return u
}

// renew makes a new plugin.
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

// run keeps the plugin running as the restart policy has it.
func (u *unit) run(ctx context.Context) {
	defer close(u.done)
	pause := firstRestart
	for {
		started := time.Now()
		err := u.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > steady {
			pause = firstRestart
		}
		u.report(err)
		policy := u.manager.policy()
		if policy == Never || policy == OnFailure && err == nil {
			return
		}
		if wait.For(ctx, pause) != nil {
			return
		}
		pause = min(pause*2, lastRestart)
		u.mu.Lock()
		u.status.Restarts++
		u.mu.Unlock()
		u.renew()
		u.manager.remount()
	}
}

// once runs the plugin to its end.
func (u *unit) once(ctx context.Context) error {
	u.mu.Lock()
	p, host := u.plugin, u.manager.config.Host
	host.Metrics = u.registry
	u.mu.Unlock()
	host.Logger = host.Logger.With("plugin", u.spec.Name)
	err := Safely(func() error {
		ctx, cancel := context.WithTimeout(ctx, initTimeout)
		defer cancel()
		return p.Init(ctx, u.spec.Config, host)
	})
	u.setRunning(err == nil)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	defer u.setRunning(false)
	return Safely(func() error { return p.Start(ctx) })
}

func (u *unit) setRunning(running bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.status.Running != running {
		u.status.Running, u.status.Since = running, time.Now()
	}
	select {
	case <-u.begun:
	default:
		close(u.begun)
	}
}

// report tells why the plugin ended.
func (u *unit) report(err error) {
	why := "ended without being asked to"
	if err != nil {
		why = err.Error()
	}
	u.mu.Lock()
	u.status.LastError = foreign.Cut(why, result.MaxMessage)
	u.mu.Unlock()
	logger := u.manager.config.Host.Logger.With("plugin", u.spec.Name)
	var caught *panicError
	if errors.As(err, &caught) {
		logger = logger.With("stack", caught.stack)
	}
	logger.Error("plugin ended", "err", why)
	if tell := u.manager.config.Host.Tell; tell != nil {
		tell(result.Failed, "PluginFailed", "plugin "+u.spec.Name+": "+why)
	}
}

// stop ends the plugin, at the latest when ctx ends: then what is left of it is told to end and not waited for.
func (u *unit) stop(ctx context.Context) error {
	u.mu.Lock()
	p, running := u.plugin, u.status.Running
	u.mu.Unlock()
	var err error
	if running {
		stopped := make(chan error, 1)
		go func() { stopped <- Safely(func() error { return p.Stop(ctx) }) }()
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
	err := Safely(func() error {
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

// needs are those of the plugin that runs.
func (u *unit) needs() Needs {
	u.mu.Lock()
	p, running := u.plugin, u.status.Running
	u.mu.Unlock()
	if n, ok := p.(Needer); ok && running {
		return n.Needs()
	}
	return Needs{}
}

// serve answers for one route of the plugin, whichever instance of it runs.
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

// panicError is a panic that was caught.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Safely calls a function and makes an error of a panic. A plugin calls what it runs in goroutines of its own through it:
// one plugin's fault is not to be the others' end.
func Safely(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{value: r, stack: string(debug.Stack())}
		}
	}()
	return do()
}

// Go runs a function in a group; a panic ends the group with an error.
func Go(group *errgroup.Group, do func() error) {
	group.Go(func() error { return Safely(do) })
}
