package inpod

import (
	"context"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/record"
	"github.com/refit-project/refit/internal/wait"
)

// recordLater passes the revision in force to the goroutine that records it. It replaces one that is still waiting.
func (p *Plugin) recordLater(u *hotupdate.Updater, current hotupdate.Revision) {
	at := u.Unrecorded()
	accepted := at
	if at.IsZero() { // the same revision as before
		accepted = time.Now()
	}
	select {
	case <-p.unrecorded:
	default:
	}
	p.unrecorded <- recording{record.NewRevision(current, accepted), at} // does not block: only the goroutine that owns the updater sends
}

// resumeRecording records what an earlier run of this sidecar has accepted and could not record.
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

// recordFor records a revision. It retries with growing pauses while the API server does not accept it, until the next
// revision is waiting: else a new pod would start with an older revision. It returns the revision if another attempt is due
// when ctx ends, or nil.
func (p *Plugin) recordFor(ctx context.Context, u *hotupdate.Updater, r recording) (left *recording) {
	pause := wait.Backoff{First: firstRetry, Last: maxRetry}
	for {
		err := p.recordNow(context.WithoutCancel(ctx), u, r)
		switch {
		case err == nil, permanent(err), len(p.unrecorded) > 0:
			return nil
		case wait.For(ctx, pause.Next()) != nil:
			return &r
		}
	}
}

// recordNow records a revision, or logs why it could not. An error does not fail the update, because the files are in
// force.
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
