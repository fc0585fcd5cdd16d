package trigger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/plugin"
)

const (
	// quietPeriod is how long a volume must be unchanged before it is read.
	quietPeriod = 200 * time.Millisecond

	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Updater carries out the requests of triggers.
type Updater interface {
	// Delivered returns the TriggerDigest of the last accepted request of a trigger.
	Delivered(trigger string) string
	// Apply carries out a request. retry reports whether another attempt may succeed.
	Apply(ctx context.Context, request hotupdate.Request) (retry bool, err error)
}

// Trigger follows one source.
type Trigger struct {
	config  Config
	ref     ownpod.Reference
	api     *ownpod.Client
	updater Updater
	guard   *guard.Guard
	logger  *slog.Logger
	first   sync.Once
	tried   chan struct{}
}

// Deps are the dependencies of a Trigger.
type Deps struct {
	Namespace string
	// API is nil without an API server.
	API     *ownpod.Client
	Updater Updater
	Guard   *guard.Guard
	Logger  *slog.Logger
}

// New creates a Trigger. Run follows its source.
func New(c Config, d Deps) *Trigger {
	return &Trigger{config: c, ref: c.Reference(d.Namespace), api: d.API, updater: d.Updater, guard: d.Guard, logger: d.Logger, tried: make(chan struct{})}
}

// Tried is closed when the first content has been applied, or when that has failed.
func (t *Trigger) Tried() <-chan struct{} { return t.tried }

func (t *Trigger) name() string { return t.config.Name(t.ref.Namespace) }

func (t *Trigger) markTried() { t.first.Do(func() { close(t.tried) }) }

// Run follows the source until ctx ends, and returns nil then.
func (t *Trigger) Run(ctx context.Context) error {
	defer t.markTried()
	if t.config.Directory == "" && t.api == nil {
		t.markTried()
		t.logger.Warn("trigger needs an API server: left out", "trigger", t.name())
		<-ctx.Done()
		return nil
	}
	changes := make(chan content, 1)
	ctx, cancel := context.WithCancel(ctx)
	var applying sync.WaitGroup
	var applied error
	applying.Go(func() {
		applied = plugin.Safely(t.guard, "hot_update", func() error { t.apply(ctx, changes); return nil })
		cancel()
	})
	followed := plugin.Safely(t.guard, "hot_update", func() error {
		if t.config.Directory != "" {
			t.followDirectory(ctx, changes)
		} else {
			t.followObject(ctx, changes)
		}
		return nil
	})
	cancel()
	applying.Wait()
	return errors.Join(followed, applied)
}

// followObject sends the object's content when it has changed. If the object does not exist or is deleted, the files stay
// as they are.
func (t *Trigger) followObject(ctx context.Context, changes chan content) {
	selection := ownpod.Selection{Of: t.ref}
	ownpod.Follow(ctx, t.api, selection, func(items map[string]object) {
		if o, ok := items[t.ref.Name]; ok {
			offer(changes, o.content())
			return
		}
		t.markTried()
	}, ownpod.Log(t.logger, selection))
}

// offer replaces content that has not been received yet, because only the latest counts.
func offer(changes chan content, c content) {
	select {
	case <-changes:
	default:
	}
	changes <- c
}

// apply carries out the latest content. It retries with growing pauses after an error that may pass. After other errors it
// does not try the same content again, even if an event of the object delivers it once more.
func (t *Trigger) apply(ctx context.Context, changes <-chan content) {
	var pending *hotupdate.Request
	refused := ""
	pause := wait.Backoff{First: firstRetry, Last: lastRetry}
	timer := time.NewTimer(0)
	if !timer.Stop() {
		<-timer.C
	}
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-changes:
			request := t.config.request(t.name(), c)
			if request.TriggerDigest == refused || pending != nil && pending.TriggerDigest == request.TriggerDigest {
				continue // the same content again, such as after a new list: it waits for its next attempt
			}
			pending, refused = nil, ""
			pause.Reset()
			if t.updater.Delivered(request.Trigger) != request.TriggerDigest {
				pending = &request
			}
		case <-timer.C:
		}
		if pending != nil {
			retry, err := t.updater.Apply(ctx, *pending)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.logger.Warn("update from trigger failed", "trigger", t.name(), "retry", retry, "err", err)
			}
			switch {
			case err != nil && retry:
				timer.Reset(pause.Next())
			case err != nil:
				pending, refused = nil, pending.TriggerDigest
			default:
				pending = nil
			}
		}
		t.markTried()
	}
}

// followDirectory sends the volume's content when it has changed, until ctx ends.
func (t *Trigger) followDirectory(ctx context.Context, changes chan content) {
	pause := wait.Backoff{First: firstRetry, Last: lastRetry}
	for {
		began := time.Now()
		err := t.watchDirectory(ctx, changes)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRetry { // it was followed for long: the error is not the last one again
			pause.Reset()
		}
		t.logger.Warn("volume is not followed, trying again", "trigger", t.name(), "err", err)
		t.markTried()
		if wait.For(ctx, pause.Next()) != nil {
			return
		}
	}
}

// watchDirectory follows a mounted volume: kubelet swaps its link ..data.
func (t *Trigger) watchDirectory(ctx context.Context, changes chan content) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", t.config.Directory, err)
	}
	defer watcher.Close() //nolint:errcheck // nothing is lost by it
	if err := watcher.Add(t.config.Directory); err != nil {
		return fmt.Errorf("watch %s: %w", t.config.Directory, err)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return errors.New("watch has ended")
			}
			if event.Op != fsnotify.Chmod {
				timer.Reset(quietPeriod)
			}
		case err := <-watcher.Errors:
			return err
		case <-timer.C:
			// Another folder may have its name now. Nothing changes if it is the same one.
			if err := watcher.Add(t.config.Directory); err != nil {
				return fmt.Errorf("watch %s: %w", t.config.Directory, err)
			}
			files, err := readVolume(t.config.Directory)
			if err != nil {
				return fmt.Errorf("read volume: %w", err)
			}
			offer(changes, content{files: files})
		}
	}
}
