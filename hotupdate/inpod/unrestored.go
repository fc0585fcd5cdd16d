package inpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/hotupdate/inpod/record"
	"github.com/refit-project/refit/internal/wait"
)

const (
	// firstRestoreRetry and maxRestoreRetry are the shortest and the longest pause between attempts to restore once updates are
	// accepted. rolledBackRetry is the pause after an attempt that was rolled back, because the program has been reloaded twice
	// for it.
	firstRestoreRetry = 5 * time.Second
	maxRestoreRetry   = time.Minute
	rolledBackRetry   = 5 * time.Minute
)

// unrestored are the revisions that the workload has accepted and this pod does not have. A request that keeps files is applied
// on top of them, or refused: else the files of this pod alone would become the files of the workload.
type unrestored struct {
	// wanted is the result of record.Store.Latest; empty until it has been read.
	wanted []record.Revision
	err    error
}

func (p *Plugin) getUnrestored() *unrestored {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unrestored
}

func (p *Plugin) setUnrestored(o *unrestored) {
	p.mu.Lock()
	p.unrestored = o
	p.mu.Unlock()
	p.metrics.Unrestored(o != nil)
}

// readRecord reads the record. Nothing is missing if the workload has accepted nothing.
func (p *Plugin) readRecord(ctx context.Context) error {
	wanted, err := p.record.Latest(ctx)
	switch {
	case errors.Is(err, record.ErrDamaged), err == nil && len(wanted) == 0:
		p.setUnrestored(nil)
	case err != nil:
		p.setUnrestored(&unrestored{err: err})
	default:
		p.setUnrestored(&unrestored{wanted: wanted})
	}
	return err
}

// tryRestore applies the newest wanted revision, or else the newest one before it that can be fetched. The error is why the
// newest one is not in force.
func (p *Plugin) tryRestore(ctx context.Context, lock *hotupdate.Lock, o unrestored, setReload func(*hotupdate.Request)) (res hotupdate.Result, newestErr error) {
	for i, revision := range o.wanted {
		if i > 0 && lock.Provisional() {
			break // an earlier attempt has put an older revision in force
		}
		var err error
		if res, err = p.tryRevision(ctx, lock, revision, i > 0, i+1 < len(o.wanted), setReload); err == nil {
			if i > 0 {
				p.host.Logger.Warn("an earlier revision is in force", "version", revision.Version, "instead of", o.wanted[0].Version)
				newestErr = fmt.Errorf("%w; %s is in force instead", newestErr, revision.Version)
			}
			break
		}
		if i == 0 || errors.Is(newestErr, record.ErrLost) && !permanent(err) { // the newest one does not exist any more, and this one may be available later
			newestErr = err
		}
	}
	if newestErr == nil || neverRestorable(newestErr) {
		p.setUnrestored(nil)
	} else {
		p.setUnrestored(&unrestored{wanted: o.wanted, err: newestErr})
	}
	return res, newestErr
}

// tryRevision applies one revision. If there are others to try, it uses at most half of the remaining time.
func (p *Plugin) tryRevision(ctx context.Context, lock *hotupdate.Lock, r record.Revision, provisional, others bool, setReload func(*hotupdate.Request)) (hotupdate.Result, error) {
	if r.Partial {
		return hotupdate.Result{}, fmt.Errorf("%w: of %s: %s", record.ErrLost, r.Version, r.Reason)
	}
	current, err := lock.Current()
	if err != nil {
		return hotupdate.Result{}, err
	}
	request := r.Request()
	request.Keep = current.Version != hotupdate.InitialVersion // keep the files of triggers
	request.Provisional = provisional
	setReload(&request)
	if by, ok := ctx.Deadline(); ok && others {
		half, cancel := context.WithTimeout(ctx, time.Until(by)/2)
		defer cancel()
		ctx = half
	}
	return lock.Apply(ctx, request)
}

// neverRestorable reports whether a revision can never be restored, because its content is not allowed. The workload then continues
// from what is in force instead.
func neverRestorable(err error) bool {
	return errors.Is(err, hotupdate.ErrInvalid) || errors.Is(err, hotupdate.ErrArchive)
}

// retryRestore retries the restore until it has succeeded or an update was accepted.
func (p *Plugin) retryRestore(ctx context.Context) {
	pauses := wait.Backoff{First: firstRestoreRetry, Last: maxRestoreRetry}
	pause := pauses.Next()
	for p.getUnrestored() != nil {
		if wait.For(ctx, pause) != nil {
			return
		}
		pause = pauses.Next()
		err := p.retryRestoreOnce(ctx)
		var failure *hotupdate.Failure
		switch {
		case ctx.Err() != nil, errors.Is(err, httpapi.ErrStopping):
			return
		case errors.As(err, &failure) && failure.RolledBack:
			pause = rolledBackRetry
		}
		if err != nil {
			p.host.Logger.Warn("not restored, will be tried again", "pause", pause, "err", err)
		}
	}
}

// retryRestoreOnce makes one attempt.
func (p *Plugin) retryRestoreOnce(ctx context.Context) error {
	if o := p.getUnrestored(); o != nil && len(o.wanted) == 0 {
		if err := p.readRecord(ctx); err != nil {
			return err
		}
	}
	if p.getUnrestored() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.wait())
	defer cancel()
	_, err := p.submit(ctx, true, func(ctx context.Context, lock *hotupdate.Lock) outcome {
		began, o := time.Now(), p.getUnrestored()
		if o == nil { // an update has been accepted meanwhile
			return outcome{}
		}
		version := o.wanted[0].Version
		res, err := p.tryRestore(ctx, lock, *o, func(request *hotupdate.Request) { p.setReload(ctx, request) })
		if lock.ReloadPending() {
			p.requestReload(version)
		}
		if err == nil {
			p.report(version, began, res, nil)
		}
		return outcome{res, err}
	})
	return err
}

// mergeUnrestored applies a request that keeps files on top of the missing revision. explain adds this to the error if the update
// fails.
func (p *Plugin) mergeUnrestored(ctx context.Context, request hotupdate.Request) (on hotupdate.Request, explain func(error) error, err error) {
	explain = func(err error) error { return err }
	o := p.getUnrestored()
	if o == nil || !request.Keep {
		return request, explain, nil
	}
	if len(o.wanted) == 0 {
		if err := p.readRecord(ctx); err != nil && p.getUnrestored() != nil {
			return request, explain, fmt.Errorf("%w: what the workload has accepted cannot be read, and the update would keep its files: %w", httpapi.ErrRestoring, err)
		}
		if o = p.getUnrestored(); o == nil {
			return request, explain, nil
		}
	}
	if on, err = o.wanted[0].Merge(request); err != nil {
		return request, explain, fmt.Errorf("%w, and the update would keep them: send them with it, send all files and keep none, or roll back: %w", httpapi.ErrUnrestored, err)
	}
	return on, func(err error) error {
		var failure *hotupdate.Failure
		if errors.As(err, &failure) && failure.Phase == hotupdate.Fetching {
			failure.Err = fmt.Errorf("%w (the update keeps the files of %s, which could not be restored yet: send the missing one with it, send all files and keep none, or roll back)",
				failure.Err, o.wanted[0].Version)
		}
		return err
	}, nil
}
