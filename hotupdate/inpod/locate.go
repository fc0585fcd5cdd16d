package inpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/signal"
)

const (
	// processInterval is the time between searches for the program's process, and lookInterval the time between reads of
	// the pod during them.
	processInterval = 500 * time.Millisecond
	lookInterval    = 10 * time.Second
)

// locate returns nil if the processes to signal can be found. If the last known pod does not lead to them, it reads the pod
// again, because the watch comes back late after an outage of the API server. The error is httpapi.ErrUnavailable if the
// API server does not respond.
func (p *Plugin) locate(ctx context.Context) error {
	err := p.missing(ctx)
	if err == nil || p.host.Look == nil || !slices.ContainsFunc(p.finders(), byContainer) {
		return err
	}
	lookErr := p.host.Look(ctx)
	switch {
	case errors.Is(lookErr, ownpod.ErrForbidden), errors.Is(lookErr, ownpod.ErrNotFound):
		return err // the role or the pod is wrong, and another attempt would not help
	case lookErr != nil:
		return fmt.Errorf("%w: %w: %w", httpapi.ErrUnavailable, err, lookErr)
	}
	return p.missing(ctx)
}

// unavailable returns an error if reloading the program needs the API server and it does not respond. Then the update writes
// nothing, because it would have to be undone.
func (p *Plugin) unavailable(ctx context.Context, version string) error {
	err := p.locate(ctx)
	if !errors.Is(err, httpapi.ErrUnavailable) {
		return nil // a missing process is reported by the step, and may exist by then
	}
	p.host.Logger.Warn("update not tried", "version", version, "err", err)
	return err
}

func byContainer(f process.Finder) bool { return f.Config.ContainerName != "" }

// missing returns the error of the search for the processes to signal if there are none at the moment.
func (p *Plugin) missing(ctx context.Context) error {
	for _, finder := range p.finders() {
		if finder.FS == nil {
			continue
		}
		if _, err := finder.Find(ctx); !errors.Is(err, process.ErrNotShared) && (errors.Is(err, signal.ErrNotFound) || errors.Is(err, process.ErrNoStatus)) {
			return err
		}
	}
	return nil
}

// awaitProgram waits until the processes to signal exist, or until it is known that they cannot have been started yet.
func (p *Plugin) awaitProgram(ctx context.Context) error {
	var looked time.Time
	for {
		find := p.missing
		if time.Since(looked) >= lookInterval {
			find, looked = p.locate, time.Now()
		}
		err := find(ctx)
		if err == nil || p.programNotStarted() {
			return nil
		}
		p.setNote("waiting for the process: " + err.Error())
		if wait.For(ctx, processInterval) != nil {
			return err
		}
	}
}

// finders returns the finders of the processes to signal.
func (p *Plugin) finders() []process.Finder {
	chain, err := p.config.chain()
	if err != nil {
		return nil
	}
	var finders []process.Finder
	for _, a := range chain {
		if a.Signal != nil {
			finders = append(finders, process.Finder{Config: a.Signal.Config, FS: p.host.Processes, Observed: p.host.Observed})
		}
	}
	return finders
}
