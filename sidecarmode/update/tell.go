package update

import (
	"context"
	"errors"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/update/httpapi"
	"github.com/refit-project/refit/wait"
)

// tellTries bounds how often a program is told of the same files.
const tellTries = 5

// tellLater reloads the program when its process has started after files were put in place.
func (p *Plugin) tellLater(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case version := <-p.untold:
			p.tell(ctx, version)
		}
	}
}

// tellWhenItRuns has tellLater tell the program of the files in force.
func (p *Plugin) tellWhenItRuns(version string) {
	select {
	case p.untold <- version:
	default: // it waits for the process already
	}
}

// quiet says how the program is told of a request's files. Where the process does not run yet, they are put in place, for it
// may need them to start, and it is told when it runs.
func (p *Plugin) quiet(ctx context.Context, request *hotupdate.Request) {
	gated := p.beforeProgram()
	request.Quiet = gated || p.locate(ctx) != nil
	request.TellLater = request.Quiet && !gated && len(p.updater.Reload) > 0
}

// tell reloads the program when it runs, and again after a failure: it may need longer to start than verify waits. The files stay, also
// if all attempts fail. There is none after an update that has told the program of other files, or when the plugin stops.
func (p *Plugin) tell(ctx context.Context, version string) {
	pause := firstRetry
	for try := range tellTries {
		if try > 0 {
			if wait.For(ctx, pause) != nil {
				return
			}
			pause *= 2
		}
		if p.awaitProgram(ctx) != nil {
			return
		}
		p.setNote("") // of the wait
		began, superseded := time.Now(), false
		res, err := p.submit(ctx, true, func(ctx context.Context, u *hotupdate.Updater) outcome {
			if superseded = try > 0 && !u.Untold(); superseded {
				return outcome{}
			}
			current, err := u.Current()
			return outcome{hotupdate.Result{Revision: current, Changed: true}, errors.Join(err, u.Reload(ctx))}
		})
		switch {
		case ctx.Err() != nil, superseded, errors.Is(err, httpapi.ErrStopping):
			return
		case err == nil && try == 0: // as was told when the files were put in place
			return
		case err == nil:
			p.conclude(version, began, res, nil)
			return
		}
		p.conclude(version, began, hotupdate.Result{}, err)
	}
}
