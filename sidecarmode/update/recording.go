package update

import (
	"context"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/update/record"
	"github.com/refit-project/refit/wait"
)

// recordLater has the revision in force recorded in the background. It takes the place of one that waits.
func (p *Plugin) recordLater(u *hotupdate.Updater, current hotupdate.Revision) {
	at := u.Unrecorded()
	accepted := at
	if at.IsZero() { // the same as before
		accepted = time.Now()
	}
	select {
	case <-p.later:
	default:
	}
	p.later <- recording{record.NewRevision(current, accepted), at} // has room: only the goroutine that has the updater sends
}

// resumeRecording has recorded what the sidecar before this one has accepted and could not record.
func (p *Plugin) resumeRecording(u *hotupdate.Updater) error {
	if u.Unrecorded().IsZero() {
		return nil
	}
	current, err := u.Current()
	if err != nil {
		return err
	}
	p.recordLater(u, current)
	return nil
}

// recordFor records a revision, again with growing pauses while the API server does not take it, until the next is waiting:
// a new pod would begin with what was accepted before.
func (p *Plugin) recordFor(ctx context.Context, u *hotupdate.Updater, r recording) {
	pause := firstRetry
	for {
		err := p.recordNow(context.WithoutCancel(ctx), u, r)
		if err == nil || permanent(err) || len(p.later) > 0 || wait.For(ctx, pause) != nil {
			return
		}
		pause = min(pause*2, lastRetry)
	}
}

// recordNow records a revision, or says why it could not. That is no failure of the update: the files are in force.
func (p *Plugin) recordNow(ctx context.Context, u *hotupdate.Updater, r recording) error {
	err := p.record.Accepted(ctx, r.revision)
	if err == nil && !r.at.IsZero() {
		err = u.Recorded(r.at)
	}
	if err != nil {
		p.host.Logger.Warn("revision not recorded for other pods", "version", r.revision.Version, "err", err)
		p.setNote("not recorded for other pods: " + err.Error())
		return err
	}
	p.setNote("")
	return nil
}
