package inpod

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
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/hotupdate/inpod/metrics"
	"github.com/refit-project/refit/hotupdate/inpod/record"
	"github.com/refit-project/refit/hotupdate/inpod/trigger"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/plugin/selftest"
)

// Name of the plugin in the configuration.
const Name = "hot_update"

// finalRecordTimeout bounds the last attempt to record a revision when the plugin stops.
const finalRecordTimeout = 5 * time.Second

// Plugin implements plugin.Plugin.
type Plugin struct {
	host    plugin.Host
	config  *Config
	updater hotupdate.Config
	outputs []output.Output
	metrics *metrics.Metrics
	record  *record.Store

	work          chan job
	unrecorded    chan recording // the last accepted revision, for the goroutine that records it
	pendingReload chan string    // version for which the program has to be reloaded when its process has started
	ended         chan struct{}  // closed when no job is run any more
	stopping      atomic.Bool
	ready         atomic.Bool
	reloadFailed  atomic.Bool // the restore has reported that the program could not be reloaded

	// within is context.WithDeadline. Tests end the time for a restore themselves.
	within func(ctx context.Context, by time.Time) (context.Context, context.CancelFunc)

	mu         sync.Mutex
	open       *hotupdate.Updater // nil during the restore
	unrestored *unrestored        // nil if nothing is missing
	note       string             // for /status: what the plugin waits for, or what failed
}

// job is work for the goroutine that runs jobs. Whoever sends it has the hotupdate.Lock, which the job releases.
type job func(ctx context.Context)

// recording is a revision to record for other pods. at identifies it for Updater.Recorded; it is zero if nothing has to be
// confirmed.
type recording struct {
	revision record.Revision
	at       time.Time // result of Updater.Unrecorded
}

// New is the plugin's Factory.
func New() plugin.Plugin {
	return &Plugin{
		work: make(chan job), unrecorded: make(chan recording, 1), pendingReload: make(chan string, 1),
		ended: make(chan struct{}), within: context.WithDeadline,
	}
}

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return "v1.0.0" }

// ConfigType implements plugin.Plugin.
func (p *Plugin) ConfigType() any { return &Config{} }

// Routes implements plugin.Server.
func (p *Plugin) Routes() map[string]http.Handler {
	return httpapi.Routes(requested{p})
}

// Init implements plugin.Plugin.
func (p *Plugin) Init(_ context.Context, c any, host plugin.Host) error {
	own, ok := c.(*Config)
	if !ok {
		return fmt.Errorf("configuration of type %T", c)
	}
	p.host, p.config, p.metrics = host, own, metrics.New()
	p.record = p.newRecord()
	updater, err := own.updater(host)
	errs := []error{err, p.metrics.Register(host.Metrics)}
	p.updater = updater
	if len(own.StorageConfig) > 0 {
		p.outputs, err = config.Outputs(own.StorageConfig, config.NewWhere(host.Observed(), host.Pod, "HotUpdate"))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Start implements plugin.Plugin: it restores the accepted revision, and then runs one job after another.
func (p *Plugin) Start(ctx context.Context) error {
	restored, ready := p.config.deadlines(time.Now())
	u, err := p.restore(ctx, restored)
	if u != nil {
		defer u.Close()
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.mu.Lock()
	p.open = u
	p.mu.Unlock()
	if err := p.resumeRecording(u); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	triggers := p.startTriggers(ctx, group)
	plugin.Go(p.host.Guard, p.Name(), group, func() error { p.awaitTriggers(ctx, triggers, ready); return nil })
	plugin.Go(p.host.Guard, p.Name(), group, func() error { p.runPendingReloads(ctx); return nil })
	plugin.Go(p.host.Guard, p.Name(), group, func() error { p.retryRestore(ctx); return nil })
	plugin.Go(p.host.Guard, p.Name(), group, func() error { return p.runJobs(ctx, u) })
	var left *recording
	plugin.Go(p.host.Guard, p.Name(), group, func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case r := <-p.unrecorded:
				left = p.recordFor(ctx, u, r)
			}
		}
	})
	err = group.Wait()
	close(p.ended)
	p.finish(ctx, u, left)
	return err
}

// startTriggers runs every trigger in the group.
func (p *Plugin) startTriggers(ctx context.Context, group *errgroup.Group) []*trigger.Trigger {
	var triggers []*trigger.Trigger
	for _, c := range p.config.Triggers {
		t := trigger.New(c, trigger.Deps{
			Namespace: p.host.Pod.Namespace, API: p.host.API, Updater: triggered{p}, Guard: p.host.Guard, Logger: p.host.Logger,
		})
		triggers = append(triggers, t)
		group.Go(func() error { return t.Run(ctx) })
	}
	return triggers
}

// awaitTriggers makes the plugin ready when the triggers have applied their first content, because a native sidecar starts
// before its program, which may need those files. A source that cannot be reached delays that until the deadline.
func (p *Plugin) awaitTriggers(ctx context.Context, triggers []*trigger.Trigger, by time.Time) {
	deadline, cancel := p.within(ctx, by)
	defer cancel()
	for _, t := range triggers {
		select {
		case <-t.Tried():
			continue
		case <-deadline.Done():
		}
		if ctx.Err() != nil {
			return
		}
		p.host.Logger.Warn("ready without the content of all triggers", "waited", p.config.wait())
		break
	}
	p.ready.Store(true)
}

// finish records the last accepted revision: the one that waits, or else left.
func (p *Plugin) finish(ctx context.Context, u *hotupdate.Updater, left *recording) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalRecordTimeout)
	defer cancel()
	select {
	case r := <-p.unrecorded:
		left = &r
	default:
	}
	if left != nil {
		_ = p.recordNow(ctx, u, *left) // has logged its error, and the next sidecar tries again
	}
}

// Stop implements plugin.Plugin: it waits for the update in progress, and no other begins.
func (p *Plugin) Stop(ctx context.Context) error {
	p.stopping.Store(true)
	u := p.current()
	if u == nil {
		return nil
	}
	lock, err := u.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("update under way: %w", err)
	}
	lock.Release()
	return nil
}

// Ready implements plugin.Readier: after the restore and the first content of the triggers.
func (p *Plugin) Ready() bool { return p.ready.Load() }

// Status implements plugin.Plugin.
func (p *Plugin) Status() plugin.Health {
	p.mu.Lock()
	u, note := p.open, p.note
	if p.unrestored != nil && p.unrestored.err != nil {
		note = cmp.Or(note, "restore, will be tried again: "+p.unrestored.err.Error())
	}
	p.mu.Unlock()
	if u == nil {
		return plugin.Health{Healthy: true, Message: cmp.Or(note, httpapi.ErrRestoring.Error())}
	}
	info := map[string]any{"update": u.Status()}
	current, err := u.Current()
	if err == nil {
		info["current"] = httpapi.Describe(current)
	}
	if err := cmp.Or(u.CheckFolder(), err); err != nil {
		return plugin.Health{Message: err.Error(), Info: info}
	}
	return plugin.Health{Healthy: true, Message: note, Info: info}
}

// Needs implements plugin.Needer.
func (p *Plugin) Needs() plugin.Needs {
	needs := plugin.Needs{Signals: len(p.finders()) > 0, Folders: []string{p.config.dir()}, Access: plugin.NeedsOf(p.outputs)}
	if ref := p.record.Reference(); ref.Name != "" {
		for _, verb := range []string{"get", "patch"} {
			needs.Access = append(needs.Access, selftest.Need{Verb: verb, Of: ref})
		}
	}
	for _, t := range p.config.Triggers {
		if ref := t.Reference(p.host.Pod.Namespace); ref.Name != "" {
			needs.Access = append(needs.Access, selftest.Need{Verb: "watch", Of: ref})
		}
	}
	return needs
}

// setNote sets the message of /status.
func (p *Plugin) setNote(note string) {
	p.mu.Lock()
	p.note = note
	p.mu.Unlock()
}

func (p *Plugin) newRecord() *record.Store {
	options := record.Options{
		ConfigMap: p.config.configMap(), Pod: p.host.Pod, Observed: p.host.Observed,
	}
	if p.host.API != nil { // else the interface would hold a nil pointer
		options.API = p.host.API
	}
	return record.New(options)
}

// current returns the updater, or nil during the restore.
func (p *Plugin) current() *hotupdate.Updater {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}
