package inpod

import (
	"context"
	"errors"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/internal/wait"
)

// maxReloads bounds how often the program is reloaded for the same files.
const maxReloads = 5

// runPendingReloads reloads the program when its process has started after the files were put in place.
func (p *Plugin) runPendingReloads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case version := <-p.pendingReload:
			p.reloadWhenRunning(ctx, version)
		}
	}
}

// requestReload lets runPendingReloads reload the program for the files in force.
func (p *Plugin) requestReload(version string) {
	select {
	case p.pendingReload <- version:
	default: // it waits for the process already
	}
}

// setReload sets whether a request reloads the program. If the process does not run yet, the files are put in place, because it
// may need them to start, and it is reloaded when it runs.
func (p *Plugin) setReload(ctx context.Context, request *hotupdate.Request) {
	gated := p.programNotStarted()
	request.NoReload = gated || p.locate(ctx) != nil
	request.ReloadLater = request.NoReload && !gated && len(p.updater.Reload) > 0
}

// reloadWhenRunning waits until the program runs and reloads it. It retries after a failure, because the program may need longer to
// start than verify waits. The files stay even if all attempts fail. It stops if another update has reloaded the program,
// or if the plugin stops.
func (p *Plugin) reloadWhenRunning(ctx context.Context, version string) {
	pause, reported := wait.Backoff{First: firstRetry, Last: maxRetry}, !p.reloadFailed.Swap(false)
	for try := range maxReloads {
		if try > 0 && wait.For(ctx, pause.Next()) != nil {
			return
		}
		if p.awaitProgram(ctx) != nil {
			return
		}
		p.setNote("") // the program is found
		began, superseded := time.Now(), false
		res, err := p.submit(ctx, true, func(ctx context.Context, lock *hotupdate.Lock) outcome {
			if superseded = try > 0 && !lock.ReloadPending(); superseded {
				return outcome{}
			}
			current, err := lock.Current()
			return outcome{hotupdate.Result{Revision: current, Changed: true}, errors.Join(err, lock.Reload(ctx))}
		})
		switch {
		case ctx.Err() != nil, superseded, errors.Is(err, httpapi.ErrStopping):
			return
		case err == nil && try == 0 && reported: // already reported when the files were put in place
			return
		case err == nil:
			p.report(version, began, res, nil)
			return
		}
		p.report(version, began, hotupdate.Result{}, err)
	}
}
