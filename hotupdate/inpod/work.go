package inpod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/plugin"
)

// outcome is the result of an update.
type outcome struct {
	result hotupdate.Result
	err    error
}

// submit passes work to the goroutine that runs jobs and waits for its end. If wait is false and work is in
// progress, it returns hotupdate.ErrBusy. The work continues if the caller's ctx ends.
func (p *Plugin) submit(ctx context.Context, wait bool, do func(context.Context, *hotupdate.Lock) outcome) (hotupdate.Result, error) {
	lock, err := p.acquire(ctx, wait)
	if err != nil {
		return hotupdate.Result{}, err
	}
	ended := make(chan outcome, 1)
	select {
	case p.work <- func(ctx context.Context) {
		var o outcome
		panicErr := plugin.Safely(p.host.Guard, p.Name(), func() error {
			if err := lock.CheckFolder(); err != nil {
				o.err = fmt.Errorf("%w: %w", httpapi.ErrRestoring, err)
				return nil
			}
			o = do(ctx, lock)
			return nil
		})
		lock.Release()
		if panicErr != nil {
			p.host.Logger.Error("update ended in a panic", "err", panicErr)
			o.err = panicErr
		}
		ended <- o
	}:
	case <-ctx.Done():
		lock.Release()
		return hotupdate.Result{}, ctx.Err()
	case <-p.ended:
		lock.Release()
		return hotupdate.Result{}, httpapi.ErrStopping
	}
	select {
	case o := <-ended:
		return o.result, o.err
	case <-ctx.Done():
		return hotupdate.Result{}, ctx.Err()
	}
}

// folderInterval is the time between checks that nobody has deleted the files of this program.
const folderInterval = 5 * time.Second

// runJobs runs one job after another. It ends with an error if the folder can no longer be used: the plugin is started again
// then, and restores the files.
func (p *Plugin) runJobs(ctx context.Context, u *hotupdate.Updater) error {
	tick := time.NewTicker(folderInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-p.work:
			do(ctx)
		case <-tick.C:
		}
		if err := u.CheckFolder(); err != nil {
			return fmt.Errorf("check %s: %w", p.config.dir(), err)
		}
	}
}

// acquire returns the right to update, unless the plugin restores or stops.
func (p *Plugin) acquire(ctx context.Context, wait bool) (*hotupdate.Lock, error) {
	u := p.current()
	switch {
	case p.stopping.Load():
		return nil, httpapi.ErrStopping
	case u == nil:
		return nil, httpapi.ErrRestoring
	}
	lock, err := u.TryAcquire()
	if wait && err != nil {
		lock, err = u.Acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	if p.stopping.Load() {
		lock.Release()
		return nil, httpapi.ErrStopping
	}
	return lock, nil
}

// requested implements httpapi.Updates.
type requested struct{ *Plugin }

// Apply implements httpapi.Updates: it carries out a request, records how to fetch its files, and reports the outcome.
func (p requested) Apply(ctx context.Context, request hotupdate.Request) (hotupdate.Result, error) {
	return p.submit(ctx, false, func(ctx context.Context, lock *hotupdate.Lock) outcome {
		began := time.Now()
		if !request.DryRun { // a dry run reloads nothing
			if err := p.unavailable(ctx, request.Version); err != nil {
				return outcome{err: err}
			}
		}
		request, explain, err := p.mergeUnrestored(ctx, request)
		if err != nil {
			p.host.Logger.Warn("update not tried", "version", request.Version, "err", err)
			return outcome{err: err}
		}
		request.Record, request.DistinctVersion = true, p.config.Verify.ComparesVersion()
		res, err := lock.Apply(ctx, request)
		err = explain(err)
		if request.DryRun || errors.Is(err, hotupdate.ErrInvalid) {
			return outcome{res, err}
		}
		p.report(request.Version, began, res, err)
		if err == nil {
			p.accepted(lock.Updater, res.Revision)
		}
		return outcome{res, err}
	})
}

// Rollback implements httpapi.Updates: it rolls back to an accepted revision and reports the outcome.
func (p requested) Rollback(ctx context.Context, id string) (hotupdate.Result, error) {
	return p.submit(ctx, false, func(ctx context.Context, lock *hotupdate.Lock) outcome {
		began := time.Now()
		if err := p.unavailable(ctx, id); err != nil {
			return outcome{err: err}
		}
		res, err := lock.Rollback(ctx, id)
		if errors.Is(err, hotupdate.ErrUnknownRevision) || errors.Is(err, hotupdate.ErrInvalid) {
			return outcome{res, err}
		}
		p.report(cmp.Or(res.Revision.Version, id), began, res, err)
		if err == nil {
			p.accepted(lock.Updater, res.Revision)
		}
		return outcome{res, err}
	})
}

// Revisions implements httpapi.Updates.
func (p requested) Revisions() ([]hotupdate.Revision, error) {
	u := p.current()
	if u == nil {
		return nil, httpapi.ErrRestoring
	}
	return u.Revisions(), nil
}

// accepted records the revision of a successful request for the workload. Nothing remains to be restored then.
func (p *Plugin) accepted(u *hotupdate.Updater, current hotupdate.Revision) {
	p.setUnrestored(nil)
	p.recordLater(u, current)
}

// triggered implements trigger.Updater.
type triggered struct{ *Plugin }

// Delivered implements trigger.Updater.
func (p triggered) Delivered(name string) string {
	if u := p.current(); u != nil {
		return u.Delivered(name).Digest
	}
	return ""
}

// Apply implements trigger.Updater.
func (p triggered) Apply(ctx context.Context, request hotupdate.Request) (retry bool, err error) {
	p.setReload(ctx, &request)
	request.DistinctVersion = p.config.Verify.ComparesVersion() && !request.NoReload // without a reload nothing is verified
	_, err = p.submit(ctx, true, func(ctx context.Context, lock *hotupdate.Lock) outcome {
		began := time.Now()
		res, err := lock.Apply(ctx, request)
		if res.Changed || err != nil {
			p.report(request.Version, began, res, err)
		}
		return outcome{res, err}
	})
	if err == nil && request.ReloadLater {
		p.host.Logger.Info("the files are in place before the process runs that reads them", "version", request.Version)
		p.requestReload(request.Version)
	}
	return err != nil && !permanent(err), err
}
