package update

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/refit-project/refit/hotupdate"
)

// answer is how an update ended.
type answer struct {
	result hotupdate.Result
	err    error
}

// have has work done by the goroutine that has the updater. Unless the caller is patient, somebody else's work
// under way is hotupdate.ErrBusy. The work goes on when ctx, the caller's, ends.
func (p *Plugin) have(ctx context.Context, patient bool, do func(context.Context, *hotupdate.Updater) answer) (hotupdate.Result, error) {
	if err := p.take(ctx, patient); err != nil {
		return hotupdate.Result{}, err
	}
	ended := make(chan answer, 1)
	select {
	case p.work <- func(ctx context.Context, u *hotupdate.Updater) {
		a := do(ctx, u)
		<-p.slot
		ended <- a
	}:
	case <-ctx.Done():
		<-p.slot
		return hotupdate.Result{}, ctx.Err()
	}
	select {
	case a := <-ended:
		return a.result, a.err
	case <-ctx.Done():
		return hotupdate.Result{}, ctx.Err()
	}
}

// take takes the slot.
func (p *Plugin) take(ctx context.Context, patient bool) error {
	switch {
	case p.stopping.Load():
		return errStopping
	case p.current() == nil:
		return errRestoring
	}
	if patient {
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
		return errStopping
	}
	return nil
}

// apply carries out a request and tells of it. A trigger is patient.
func (p *Plugin) apply(ctx context.Context, patient bool, request hotupdate.Request) (hotupdate.Result, error) {
	return p.have(ctx, patient, func(ctx context.Context, u *hotupdate.Updater) answer {
		began := time.Now()
		res, err := u.Apply(ctx, request)
		if request.DryRun || errors.Is(err, hotupdate.ErrInvalid) {
			return answer{res, err}
		}
		p.conclude(request.Version, began, res, err)
		if err == nil && !patient { // a trigger brings its files to new pods by itself
			p.later <- func(ctx context.Context) { p.keepInMind(ctx, request, res.Revision) }
		}
		return answer{res, err}
	})
}

// rollback goes back to an accepted revision and tells of it.
func (p *Plugin) rollback(ctx context.Context, id string) (hotupdate.Result, error) {
	return p.have(ctx, false, func(ctx context.Context, u *hotupdate.Updater) answer {
		began := time.Now()
		res, err := u.Rollback(ctx, id)
		if errors.Is(err, hotupdate.ErrUnknownRevision) || errors.Is(err, hotupdate.ErrInvalid) {
			return answer{res, err}
		}
		p.conclude(cmp.Or(res.Revision.Version, id), began, res, err)
		if err == nil {
			p.later <- func(ctx context.Context) { p.rememberAgain(ctx, res.Revision) }
		}
		return answer{res, err}
	})
}
