package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/sidecarmode/process"
	"github.com/refit-project/refit/sidecarmode/update/httpapi"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/wait"
)

const (
	// processInterval is between searches for the program's process, and lookInterval between reads of the pod for them.
	processInterval = 500 * time.Millisecond
	lookInterval    = 10 * time.Second
)

// locate reports whether the processes that are signalled can be found. Where the pod as it was last seen does not lead to
// them it is read again: after an outage of the API server the watch comes back late. The error is
// httpapi.ErrUnavailable if the API server does not respond either.
func (p *Plugin) locate(ctx context.Context) error {
	err := p.missing(ctx)
	if err == nil || p.host.Look == nil || !slices.ContainsFunc(p.finders(), byContainer) {
		return err
	}
	fault := p.host.Look(ctx)
	switch {
	case errors.Is(fault, ownpod.ErrForbidden), errors.Is(fault, ownpod.ErrNotFound):
		return err // the role or the pod is what is wrong, and another attempt does not help
	case fault != nil:
		return fmt.Errorf("%w: %w: %w", httpapi.ErrUnavailable, err, fault)
	}
	return p.missing(ctx)
}

// unavailable is the error of an update that would have to be undone, for the API server is needed to tell the program and
// does not respond. Nothing is written then.
func (p *Plugin) unavailable(ctx context.Context, version string) error {
	err := p.locate(ctx)
	if !errors.Is(err, httpapi.ErrUnavailable) {
		return nil // a process that is not there is the step's to report, and may be there by then
	}
	p.host.Logger.Warn("update not tried", "version", version, "err", err)
	return err
}

func byContainer(f process.Finder) bool { return f.Config.ContainerName != "" }

// missing is the error of a search for the processes that are signalled, as far as it says that there are none at the moment.
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

// awaitProgram waits until the processes that are signalled can be found, or cannot have been started yet.
func (p *Plugin) awaitProgram(ctx context.Context) error {
	var looked time.Time
	for {
		find := p.missing
		if time.Since(looked) >= lookInterval {
			find, looked = p.locate, time.Now()
		}
		err := find(ctx)
		if err == nil || p.beforeProgram() {
			return nil
		}
		p.setNote("waiting for the process: " + err.Error())
		if wait.For(ctx, processInterval) != nil {
			return err
		}
	}
}

// finders are those of the processes that are signalled.
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
