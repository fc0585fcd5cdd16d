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

// submit passes work to the goroutine that owns the updater and waits for its end. If wait is false and work is in
// progress, it returns hotupdate.ErrBusy. The work continues if the caller's ctx ends.
func (p *Plugin) submit(ctx context.Context, wait bool, do func(context.Context, *hotupdate.Updater) outcome) (hotupdate.Result, error) {
	if err := p.acquire(ctx, wait); err != nil {
		return hotupdate.Result{}, err
	}
	ended := make(chan outcome, 1)
	select {
	case p.work <- func(ctx context.Context, u *hotupdate.Updater) {
		var o outcome
		panicErr := plugin.Safely(p.host.Guard, p.Name(), func() error {
			if err := u.CheckFolder(); err != nil {
				o.err = fmt.Errorf("%w: %w", httpapi.ErrRestoring, err)
				return nil
			}
			o = do(ctx, u)
			return nil
		})
		<-p.slot
		if panicErr != nil {
			p.host.Logger.Error("update ended in a panic", "err", panicErr)
			o.err = panicErr
		}
		ended <- o
	}:
	case <-ctx.Done():
		<-p.slot
		return hotupdate.Result{}, ctx.Err()
	case <-p.ended:
		<-p.slot
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
			do(ctx, u)
		case <-tick.C:
		}
		if err := u.CheckFolder(); err != nil {
			return fmt.Errorf("check %s: %w", p.config.dir(), err)
		}
	}
}

// acquire takes the slot, which excludes other work.
func (p *Plugin) acquire(ctx context.Context, wait bool) error {
	switch {
	case p.stopping.Load():
		return httpapi.ErrStopping
	case p.current() == nil:
		return httpapi.ErrRestoring
	}
	if wait {
		select {
		case p.slot <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	} else {
		select {
		case p.slot <- struct{}{}:
		default:
			return hotupdate.ErrBusy
		}
	}
	if p.stopping.Load() {
		<-p.slot
		return httpapi.ErrStopping
	}
	return nil
}

// requested implements httpapi.Updates.
type requested struct{ *Plugin }

// Apply implements httpapi.Updates: it carries out a request, records how to fetch its files, and reports the outcome.
func (p requested) Apply(ctx context.Context, request hotupdate.Request) (hotupdate.Result, error) {
	return p.submit(ctx, false, func(ctx context.Context, u *hotupdate.Updater) outcome {
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
		res, err := u.Apply(ctx, request)
		err = explain(err)
		if request.DryRun || errors.Is(err, hotupdate.ErrInvalid) {
			return outcome{res, err}
		}
		p.report(request.Version, began, res, err)
		if err == nil {
			p.accepted(u, res.Revision)
		}
		return outcome{res, err}
	})
}

// Rollback implements httpapi.Updates: it rolls back to an accepted revision and reports the outcome.
func (p requested) Rollback(ctx context.Context, id string) (hotupdate.Result, error) {
	return p.submit(ctx, false, func(ctx context.Context, u *hotupdate.Updater) outcome {
		began := time.Now()
		if err := p.unavailable(ctx, id); err != nil {
			return outcome{err: err}
		}
		res, err := u.Rollback(ctx, id)
		if errors.Is(err, hotupdate.ErrUnknownRevision) || errors.Is(err, hotupdate.ErrInvalid) {
			return outcome{res, err}
		}
		p.report(cmp.Or(res.Revision.Version, id), began, res, err)
		if err == nil {
			p.accepted(u, res.Revision)
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
	_, err = p.submit(ctx, true, func(ctx context.Context, u *hotupdate.Updater) outcome {
		began := time.Now()
		res, err := u.Apply(ctx, request)
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
