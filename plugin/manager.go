package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/refit-project/refit/plugin/config"
)

// ErrUnknownPlugin means that no plugin with this name is registered, or that none is configured.
var ErrUnknownPlugin = errors.New("unknown plugin")

// Config of a Manager.
type Config struct {
	// Factories of all plugins that can be configured.
	Factories []Factory
	// Host is passed to each plugin, with Metrics of its own.
	Host Host
}

// Manager runs plugins.
type Manager struct {
	config    Config
	factories map[string]Factory
	mux       atomic.Pointer[http.ServeMux]

	change sync.Mutex // held while plugins are added and removed

	mu      sync.Mutex
	started bool // plugins may be added
	booted  bool // the plugins of the first configuration have been added
	file    *config.File
	units   []*unit // in boot order
}

// NewManager registers plugins without starting them.
func NewManager(c Config) (*Manager, error) {
	m := &Manager{config: c, factories: map[string]Factory{}, file: &config.File{}}
	for _, factory := range c.Factories {
		name := factory().Name()
		if m.factories[name] != nil {
			return nil, fmt.Errorf("plugin %q is registered twice", name)
		}
		m.factories[name] = factory
	}
	m.mux.Store(http.NewServeMux())
	return m, nil
}

// Types returns the types of the plugins' configurations.
func (m *Manager) Types() config.Types {
	types := config.Types{}
	for name, factory := range m.factories {
		types[name] = func() any { return factory().ConfigType() }
	}
	return types
}

func (m *Manager) policy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.file.RestartPolicy, Always)
}

// LoadConfig applies a configuration: it starts new plugins, stops plugins that were removed or whose configuration has
// changed, and leaves the others running. Before Start it only stores the configuration.
func (m *Manager) LoadConfig(ctx context.Context, file *config.File) error {
	m.change.Lock()
	defer m.change.Unlock()
	m.mu.Lock()
	m.file = file
	started, units := m.started, slices.Clone(m.units)
	m.mu.Unlock()
	if !started {
		return nil
	}
	var errs []error
	for _, u := range slices.Backward(units) {
		same := slices.ContainsFunc(file.Plugins, func(p config.Plugin) bool {
			return p.Name == u.spec.Name && p.Text == u.spec.Text && p.BootOrder == u.spec.BootOrder &&
				(p.Awaits == nil) == (u.spec.Awaits == nil)
		})
		if !same {
			errs = append(errs, m.remove(ctx, u.spec.Name))
		}
	}
	return errors.Join(append(errs, m.addMissing(ctx, file))...)
}

// Start starts the plugins of the configuration in boot order, each when the previous one has been initialized, or has
// failed to. They run until Stop.
func (m *Manager) Start(ctx context.Context) error {
	m.change.Lock()
	defer m.change.Unlock()
	m.mu.Lock()
	m.started = true
	file := m.file
	m.mu.Unlock()
	err := m.addMissing(ctx, file)
	m.mu.Lock()
	m.booted = ctx.Err() == nil
	m.mu.Unlock()
	return err
}

func (m *Manager) addMissing(ctx context.Context, file *config.File) error {
	plugins := slices.Clone(file.Plugins)
	slices.SortStableFunc(plugins, func(a, b config.Plugin) int { return cmp.Compare(a.BootOrder, b.BootOrder) })
	var errs []error
	for _, p := range plugins {
		if m.find(p.Name) == nil && ctx.Err() == nil {
			errs = append(errs, m.add(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// add starts a registered plugin and returns when it has been initialized or has failed to. A failure is not returned; it
// is in the plugin's status.
func (m *Manager) add(ctx context.Context, p config.Plugin) error {
	factory := m.factories[p.Name]
	if factory == nil {
		return fmt.Errorf("add plugin %q: %w", p.Name, ErrUnknownPlugin)
	}
	u := m.newUnit(ctx, p, factory)
	m.mu.Lock()
	m.units = append(m.units, u)
	slices.SortStableFunc(m.units, func(a, b *unit) int { return cmp.Compare(a.spec.BootOrder, b.spec.BootOrder) })
	m.mu.Unlock()
	m.remount()
	select {
	case <-u.initDone:
	case <-ctx.Done():
	}
	return nil
}

func (m *Manager) remove(ctx context.Context, name string) error {
	u := m.find(name)
	if u == nil {
		return fmt.Errorf("remove plugin %q: %w", name, ErrUnknownPlugin)
	}
	err := u.stop(ctx)
	m.mu.Lock()
	m.units = slices.DeleteFunc(m.units, func(other *unit) bool { return other == u })
	m.mu.Unlock()
	m.remount()
	return err
}

// Stop stops all plugins, the last started first.
func (m *Manager) Stop(ctx context.Context) error {
	m.change.Lock()
	defer m.change.Unlock()
	m.mu.Lock()
	units := slices.Clone(m.units)
	m.mu.Unlock()
	var errs []error
	for _, u := range slices.Backward(units) {
		errs = append(errs, m.remove(ctx, u.spec.Name))
	}
	return errors.Join(errs...)
}

func (m *Manager) find(name string) *unit {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.spec.Name == name {
			return u
		}
	}
	return nil
}

// Statuses returns the statuses of all plugins, in boot order.
func (m *Manager) Statuses() []Status {
	m.mu.Lock()
	units := slices.Clone(m.units)
	m.mu.Unlock()
	statuses := make([]Status, 0, len(units))
	for _, u := range units {
		statuses = append(statuses, u.snapshot())
	}
	return statuses
}

// Ready reports whether all plugins have been started and every Readier is ready.
func (m *Manager) Ready() bool {
	m.mu.Lock()
	booted, units := m.booted, slices.Clone(m.units)
	m.mu.Unlock()
	return booted && !slices.ContainsFunc(units, func(u *unit) bool { return !u.ready() })
}

// Needs returns the needs of all plugins.
func (m *Manager) Needs() Needs {
	m.mu.Lock()
	units := slices.Clone(m.units)
	m.mu.Unlock()
	var all Needs
	for _, u := range units {
		n := u.needs()
		all.Signals = all.Signals || n.Signals
		all.Access = append(all.Access, n.Access...)
		all.Folders = append(all.Folders, n.Folders...)
	}
	return all
}

// remount updates the routes of the plugins.
func (m *Manager) remount() {
	m.mu.Lock()
	defer m.mu.Unlock()
	mux := http.NewServeMux()
	for _, u := range m.units {
		u.mu.Lock()
		for pattern := range u.routes {
			if err := Safely(nil, u.spec.Name, func() error { mux.Handle(pattern, u.serve(pattern)); return nil }); err != nil {
				m.config.Host.Logger.Error("route of another plugin left out", "plugin", u.spec.Name, "err", err)
			}
		}
		u.mu.Unlock()
	}
	m.mux.Store(mux)
}

// ServeHTTP passes requests to the plugins' routes.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.Load().ServeHTTP(w, r) }
