package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/process"
	"github.com/refit-project/refit/sidecarmode/update/record"
	"github.com/refit-project/refit/wait"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// lastRead is the longest pause before the record is read again: updates are answered 503 until then.
	lastRead = 5 * time.Second
)

// restore takes the folder over and brings it to what the workload accepted last, unless the volume still has what this
// pod accepted: then the API is not asked. The files are put in place without telling anybody, for the program may not
// have been started yet; if it runs by then it is told. Nothing but a folder that cannot be used is an error. What could not
// be restored until then stays owed, see restoreLater.
func (p *Plugin) restore(ctx context.Context, by time.Time) (*hotupdate.Updater, error) {
	deadline, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	began := time.Now()
	u, err := hotupdate.Open(ctx, p.updater)
	if err != nil {
		return nil, err
	}
	version, changed, fault := p.restoreFiles(deadline, u)
	if ctx.Err() != nil {
		u.Close()
		return nil, nil //nolint:nilnil // the end
	}
	switch {
	case len(p.updater.Reload) == 0:
	case fault == nil && (changed || u.Interrupted()):
		fault = p.reloadProgram(deadline, u)
	case u.Untold(): // the sidecar before this one has ended in between, or the time is over
		p.untold <- version
	}
	p.setNote("")
	switch {
	case fault != nil:
		if p.owing() == nil { // which says it until it has been restored
			p.setNote("restore: " + fault.Error())
		}
		p.conclude(version, began, hotupdate.Result{}, fmt.Errorf("restore: %w", fault))
	case changed:
		if current, err := u.Current(); err == nil {
			p.conclude(version, began, hotupdate.Result{Revision: current, Changed: true}, nil)
		}
	}
	return u, nil
}

// restoreFiles applies what the record has. It reports the version and whether something changed.
func (p *Plugin) restoreFiles(ctx context.Context, u *hotupdate.Updater) (version string, changed bool, err error) {
	current, err := u.Current()
	if err != nil {
		return hotupdate.InitialVersion, false, err
	}
	if !current.Unrequested() && !u.Provisional() {
		return current.Version, false, nil // this pod's own, from before a restart of the container
	}
	p.owe(&owed{})
	err = p.retry(ctx, "read what the workload has accepted", lastRead, func() error { return p.readRecord(ctx) })
	o := p.owing()
	if err != nil || o == nil {
		return current.Version, false, err
	}
	quiet := func(request *hotupdate.Request) {
		request.Quiet, request.TellLater = true, len(p.updater.Reload) > 0 && !p.beforeProgram()
	}
	err = p.retry(ctx, "restore "+o.wanted[0].Version, lastRetry, func() error {
		res, err := p.tryRestore(ctx, u, *o, quiet)
		changed = changed || res.Changed
		return err
	})
	return o.wanted[0].Version, changed, err
}

// retry repeats what may succeed later, with growing pauses of at most longest, until ctx ends.
func (p *Plugin) retry(ctx context.Context, doing string, longest time.Duration, try func() error) error {
	pause := firstRetry
	for {
		err := try()
		if err == nil || permanent(err) {
			return err
		}
		p.host.Logger.Warn("failed, will be tried again", "doing", doing, "err", err)
		p.setNote(doing + ": " + err.Error())
		if wait.For(ctx, pause) != nil {
			return err
		}
		pause = min(pause*2, longest)
	}
}

// permanent errors stay as they are however often it is tried.
func permanent(err error) bool {
	return hotupdate.Permanent(err) || errors.Is(err, record.ErrDamaged) || errors.Is(err, record.ErrLost)
}

// reloadProgram waits for the program and reloads it: one that started after the files were in place has read them, but
// which it was cannot be known. A signal is sent when the program has a handler for it, see steps. A program that cannot have been started yet is not
// waited for: it waits for us.
func (p *Plugin) reloadProgram(ctx context.Context, u *hotupdate.Updater) error {
	if p.beforeProgram() {
		return nil
	}
	if err := p.awaitProgram(ctx); err != nil {
		return fmt.Errorf("the process has not been started: %w", err)
	}
	if p.beforeProgram() {
		return nil
	}
	return u.Reload(ctx)
}

func (p *Plugin) beforeProgram() bool { return process.Before(p.host.Observed(), p.host.Own) }
