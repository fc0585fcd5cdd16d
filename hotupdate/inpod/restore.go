package inpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/record"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/internal/wait"
)

const (
	firstRetry = time.Second
	maxRetry   = 30 * time.Second
	// maxReadRetry is the longest pause before the record is read again. Updates are answered with 503 until it has been read.
	maxReadRetry = 5 * time.Second
)

// restore opens the folder and restores what the workload accepted last. If the volume still has what this pod accepted, it
// does not ask the API server. It puts the files in place without reloading the program, which may not have been started
// yet, and reloads it if it runs by then. Only a folder that cannot be used is an error. What cannot be restored in time is
// retried by retryRestore. The caller closes the updater, also after an error.
func (p *Plugin) restore(ctx context.Context, by time.Time) (*hotupdate.Updater, error) {
	deadline, cancel := p.within(ctx, by)
	defer cancel()
	began := time.Now()
	u, err := hotupdate.Open(ctx, p.updater)
	if err != nil {
		return nil, err
	}
	lock, err := u.TryAcquire()
	if err != nil {
		return u, err
	}
	defer lock.Release()
	version, changed, restoreErr := p.restoreFiles(deadline, lock)
	if ctx.Err() != nil {
		return u, nil
	}
	switch {
	case len(p.updater.Reload) == 0:
	case restoreErr == nil && (changed || u.Interrupted()):
		if restoreErr = p.reloadProgram(deadline, lock); restoreErr != nil && ctx.Err() == nil { // it may be using other files
			p.reloadFailed.Store(true)
			p.pendingReload <- version
		}
	case u.ReloadPending(): // an earlier run of the sidecar ended before the reload, or the time is over
		p.pendingReload <- version
	}
	p.setNote("")
	switch {
	case restoreErr != nil:
		if p.getUnrestored() == nil { // else its message is shown until the restore has succeeded
			p.setNote("restore: " + restoreErr.Error())
		}
		p.report(version, began, hotupdate.Result{}, fmt.Errorf("restore: %w", restoreErr))
	case changed:
		if current, err := u.Current(); err == nil {
			p.report(version, began, hotupdate.Result{Revision: current, Changed: true}, nil)
		}
	}
	return u, nil
}

// restoreFiles applies the record. It returns the version and whether files have changed.
func (p *Plugin) restoreFiles(ctx context.Context, lock *hotupdate.Lock) (version string, changed bool, err error) {
	current, err := lock.Current()
	if err != nil {
		return hotupdate.InitialVersion, false, err
	}
	if (!current.Unrequested() || !lock.Unrecorded().IsZero()) && !lock.Provisional() {
		return current.Version, false, nil // accepted, or rolled back to, by this pod before the container was restarted
	}
	p.setUnrestored(&unrestored{})
	err = p.retry(ctx, "read what the workload has accepted", maxReadRetry, func() error { return p.readRecord(ctx) })
	o := p.getUnrestored()
	if err != nil || o == nil {
		return current.Version, false, err
	}
	quiet := func(request *hotupdate.Request) {
		request.NoReload, request.ReloadLater = true, len(p.updater.Reload) > 0 && !p.programNotStarted()
	}
	err = p.retry(ctx, "restore "+o.wanted[0].Version, maxRetry, func() error {
		res, err := p.tryRestore(ctx, lock, *o, quiet)
		changed = changed || res.Changed
		return err
	})
	return o.wanted[0].Version, changed, err
}

// retry calls try with growing pauses, at most longest, until it succeeds, fails permanently or ctx ends.
func (p *Plugin) retry(ctx context.Context, doing string, longest time.Duration, try func() error) error {
	pause := wait.Backoff{First: firstRetry, Last: longest}
	for {
		err := try()
		if err == nil || permanent(err) {
			return err
		}
		p.host.Logger.Warn("failed, will be tried again", "doing", doing, "err", err)
		p.setNote(doing + ": " + err.Error())
		if wait.For(ctx, pause.Next()) != nil {
			return err
		}
	}
}

// permanent reports whether an error will not go away with another attempt.
func permanent(err error) bool {
	return hotupdate.Permanent(err) || errors.Is(err, record.ErrDamaged) || errors.Is(err, record.ErrLost)
}

// reloadProgram waits for the program and reloads it: a program started later has already read the files, but it is not
// known whether it has. A signal is sent when the program has a handler for it, see package steps. It does not wait for a
// program that cannot have been started yet, because kubelet starts that after this sidecar.
func (p *Plugin) reloadProgram(ctx context.Context, lock *hotupdate.Lock) error {
	if p.programNotStarted() {
		return nil
	}
	if err := p.awaitProgram(ctx); err != nil {
		return fmt.Errorf("the process has not been started: %w", err)
	}
	if p.programNotStarted() {
		return nil
	}
	return lock.Reload(ctx)
}

func (p *Plugin) programNotStarted() bool { return process.Before(p.host.Observed(), p.host.Own) }
