package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/update/httpapi"
	"github.com/refit-project/refit/sidecarmode/update/record"
	"github.com/refit-project/refit/wait"
)

const (
	// firstLater and lastLater are the pauses between attempts to restore once updates are accepted, and lastSwapped the
	// shortest after one that the program did not accept: it was given files, and those before again.
	firstLater  = 5 * time.Second
	lastLater   = time.Minute
	lastSwapped = 5 * time.Minute
)

// owed is what the workload has accepted and this pod does not have. What is requested meanwhile is put on top of that, or is
// refused: the files of this pod alone would become those of the workload.
type owed struct {
	// wanted are what record.Store.Latest gives; empty while that has not been read.
	wanted []record.Revision
	fault  error
}

func (p *Plugin) owing() *owed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owed
}

func (p *Plugin) owe(o *owed) {
	p.mu.Lock()
	p.owed = o
	p.mu.Unlock()
	p.metrics.Unrestored(o != nil)
}

// readRecord reads what is owed; nothing is, if the workload has accepted nothing.
func (p *Plugin) readRecord(ctx context.Context) error {
	wanted, err := p.record.Latest(ctx)
	switch {
	case errors.Is(err, record.ErrDamaged), err == nil && len(wanted) == 0:
		p.owe(nil)
	case err != nil:
		p.owe(&owed{fault: err})
	default:
		p.owe(&owed{wanted: wanted})
	}
	return err
}

// tryRestore applies what is owed, or else the newest before it that can be had. The error is why it is not what is owed.
func (p *Plugin) tryRestore(ctx context.Context, u *hotupdate.Updater, o owed, tell func(*hotupdate.Request)) (res hotupdate.Result, fault error) {
	for i, revision := range o.wanted {
		if i > 0 && u.Provisional() {
			break // by an attempt before
		}
		var err error
		if res, err = p.tryRevision(ctx, u, revision, i > 0, i+1 < len(o.wanted), tell); err == nil {
			if i > 0 {
				p.host.Logger.Warn("an earlier revision is in force", "version", revision.Version, "instead of", o.wanted[0].Version)
				fault = fmt.Errorf("%w; %s is in force instead", fault, revision.Version)
			}
			break
		}
		if i == 0 || errors.Is(fault, record.ErrLost) && !permanent(err) { // lost for good, and this one may be had later
			fault = err
		}
	}
	if fault == nil || never(fault) {
		p.owe(nil)
	} else {
		p.owe(&owed{wanted: o.wanted, fault: fault})
	}
	return res, fault
}

// tryRevision applies one revision. Where others are left to be tried, it takes half of the time.
func (p *Plugin) tryRevision(ctx context.Context, u *hotupdate.Updater, r record.Revision, provisional, others bool, tell func(*hotupdate.Request)) (hotupdate.Result, error) {
	if r.Partial {
		return hotupdate.Result{}, fmt.Errorf("%w: of %s: %s", record.ErrLost, r.Version, r.Reason)
	}
	current, err := u.Current()
	if err != nil {
		return hotupdate.Result{}, err
	}
	request := r.Request()
	request.Keep = current.Version != hotupdate.InitialVersion // files of triggers
	request.Provisional = provisional
	tell(&request)
	if by, ok := ctx.Deadline(); ok && others {
		half, cancel := context.WithTimeout(ctx, time.Until(by)/2)
		defer cancel()
		ctx = half
	}
	return u.Apply(ctx, request)
}

// never reports that a revision cannot be had whatever happens: what its digests name may not be put in place. What is in
// force instead is what the workload goes on from.
func never(err error) bool {
	return errors.Is(err, hotupdate.ErrInvalid) || errors.Is(err, hotupdate.ErrArchive)
}

// restoreLater goes on with what could not be restored, until it has been, or an update was accepted.
func (p *Plugin) restoreLater(ctx context.Context) {
	pause := firstLater
	for p.owing() != nil {
		if wait.For(ctx, pause) != nil {
			return
		}
		pause = min(pause*2, lastLater)
		err := p.restoreAgain(ctx)
		var failure *hotupdate.Failure
		switch {
		case ctx.Err() != nil, errors.Is(err, httpapi.ErrStopping):
			return
		case errors.As(err, &failure) && failure.RolledBack:
			pause = lastSwapped
		}
		if err != nil {
			p.host.Logger.Warn("not restored, will be tried again", "pause", pause, "err", err)
		}
	}
}

// restoreAgain makes one attempt.
func (p *Plugin) restoreAgain(ctx context.Context) error {
	if o := p.owing(); o != nil && len(o.wanted) == 0 {
		if err := p.readRecord(ctx); err != nil {
			return err
		}
	}
	if p.owing() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.wait())
	defer cancel()
	_, err := p.submit(ctx, true, func(ctx context.Context, u *hotupdate.Updater) outcome {
		began, o := time.Now(), p.owing()
		if o == nil { // an update has been accepted meanwhile
			return outcome{}
		}
		version := o.wanted[0].Version
		res, err := p.tryRestore(ctx, u, *o, func(request *hotupdate.Request) { p.quiet(ctx, request) })
		if u.Untold() {
			p.tellWhenItRuns(version)
		}
		if err == nil {
			p.conclude(version, began, res, nil)
		}
		return outcome{res, err}
	})
	return err
}

// beside puts a request that keeps the other files on top of what is owed, and explain says so if it fails.
func (p *Plugin) beside(ctx context.Context, request hotupdate.Request) (on hotupdate.Request, explain func(error) error, err error) {
	explain = func(err error) error { return err }
	o := p.owing()
	if o == nil || !request.Keep {
		return request, explain, nil
	}
	if len(o.wanted) == 0 {
		if err := p.readRecord(ctx); err != nil && p.owing() != nil {
			return request, explain, fmt.Errorf("%w: what the workload has accepted cannot be read, and the update would keep its files: %w", httpapi.ErrRestoring, err)
		}
		if o = p.owing(); o == nil {
			return request, explain, nil
		}
	}
	if on, err = o.wanted[0].Beside(request); err != nil {
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
