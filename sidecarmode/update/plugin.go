package update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/selftest"
)

// Name of the plugin in the configuration.
const Name = "hot_update"

const (
	// laterBuffer is how much may wait for the API before updates wait for it, too.
	laterBuffer = 16
	// lastWords bounds what is still to be remembered at the end.
	lastWords = 5 * time.Second
)

var (
	// errRestoring: the folder is not ours yet.
	errRestoring = errors.New("the accepted revision is being restored")
	// errStopping: the sidecar ends.
	errStopping = errors.New("the sidecar is stopping")
)

// Plugin implements plugin.Plugin.
type Plugin struct {
	host    plugin.Host
	config  *Config
	updater hotupdate.Config
	targets []output.Output
	metrics *metrics
	memory  *memory

	slot     chan struct{} // holds one token: whoever has it may have work done
	work     chan job
	later    chan func(context.Context) // what need not be waited for, done in order
	stopping atomic.Bool
	ready    atomic.Bool

	mu   sync.Mutex
	open *hotupdate.Updater // nil while it restores
	note string             // what a person should know of the restore
}

// job is work for the goroutine that has the updater.
type job func(ctx context.Context, u *hotupdate.Updater)

// New is the plugin's Factory.
func New() plugin.Plugin {
	return &Plugin{slot: make(chan struct{}, 1), work: make(chan job), later: make(chan func(context.Context), laterBuffer)}
}

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return "v1.0.0" }

// ConfigType implements plugin.Plugin.
func (p *Plugin) ConfigType() any { return &Config{} }

// Routes implements plugin.Server.
func (p *Plugin) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"/hot-update":    http.HandlerFunc(p.serveUpdate),
		"/rollback":      http.HandlerFunc(p.serveRollback),
		"GET /revisions": http.HandlerFunc(p.serveRevisions),
	}
}

// Init implements plugin.Plugin.
func (p *Plugin) Init(_ context.Context, c any, host plugin.Host) error {
	own, ok := c.(*Config)
	if !ok {
		return fmt.Errorf("configuration of type %T", c)
	}
	p.host, p.config, p.metrics = host, own, newMetrics()
	p.memory = newMemory(host, own.configMap())
	updater, err := own.updater(host)
	faults := []error{err, p.metrics.register(host.Metrics)}
	p.updater = updater
	if len(own.StorageConfig) > 0 {
		p.targets, err = config.Targets(own.StorageConfig, config.NewWhere(host.Observed(), host.Pod, "HotUpdate"))
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Start implements plugin.Plugin: it restores what was accepted, and then does one job after another.
func (p *Plugin) Start(ctx context.Context) error {
	u, err := p.restore(ctx)
	if u != nil {
		defer u.Close()
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.mu.Lock()
	p.open = u
	p.mu.Unlock()
	p.ready.Store(true) // not before updates are taken
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range p.config.Triggers {
		group.Go(func() error { return p.watch(ctx, t) })
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case do := <-p.work:
				do(ctx, u)
			}
		}
	})
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case do := <-p.later:
				do(context.WithoutCancel(ctx)) // bounds itself
			}
		}
	})
	err = group.Wait()
	p.finish(ctx)
	return err
}

// finish does what is left for later.
func (p *Plugin) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for {
		select {
		case do := <-p.later:
			do(ctx)
		default:
			return
		}
	}
}

// currentOf is the revision in force.
func currentOf(u *hotupdate.Updater) (hotupdate.Revision, error) {
	all, err := u.Revisions()
	if err != nil {
		return hotupdate.Revision{}, err
	}
	if len(all) == 0 {
		return hotupdate.Revision{}, hotupdate.ErrUnknownRevision
	}
	return all[0], nil
}

// Stop implements plugin.Plugin: an update under way ends first, and no other begins.
func (p *Plugin) Stop(ctx context.Context) error {
	p.stopping.Store(true)
	select {
	case p.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("update under way: %w", ctx.Err())
	}
}

// Ready implements plugin.Readier: after the first restore.
func (p *Plugin) Ready() bool { return p.ready.Load() }

// Status implements plugin.Plugin.
func (p *Plugin) Status() plugin.Health {
	p.mu.Lock()
	u, note := p.open, p.note
	p.mu.Unlock()
	if u == nil {
		return plugin.Health{Healthy: true, Message: cmp.Or(note, errRestoring.Error())}
	}
	status := u.Status()
	info := map[string]any{"update": status}
	if current, err := currentOf(u); err == nil {
		info["current"] = describe(current)
	}
	return plugin.Health{Healthy: true, Message: note, Info: info}
}

// Needs implements plugin.Needer.
func (p *Plugin) Needs() plugin.Needs {
	needs := plugin.Needs{Signals: len(p.finders()) > 0, Folders: []string{p.config.dir()}, Access: plugin.NeedsOf(p.targets)}
	if p.memory.ref.Name != "" {
		for _, verb := range []string{"get", "patch"} {
			needs.Access = append(needs.Access, selftest.Need{Verb: verb, Of: p.memory.ref})
		}
	}
	for _, t := range p.config.Triggers {
		if ref := t.reference(p.host.Pod.Namespace); ref.Name != "" {
			needs.Access = append(needs.Access, selftest.Need{Verb: "watch", Of: ref})
		}
	}
	return needs
}

func (p *Plugin) say(note string) {
	p.mu.Lock()
	p.note = note
	p.mu.Unlock()
}
