package hotupdate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/store"
)

// Rollback puts an accepted revision in force again: the one with this ID, or with an empty ID the one before
// the current. The program is told and verified as by Apply, and a failure ends at the current revision.
func (u *Updater) Rollback(ctx context.Context, id string) (Result, error) {
	if !u.busy.TryLock() {
		return Result{}, ErrBusy
	}
	defer u.busy.Unlock()
	to, err := u.accepted(id)
	if err != nil {
		return Result{}, err
	}
	u.enter(Checking, to.Version, nil)
	u.skipped = ""
	res, err := u.rollback(ctx, to)
	res.Changed = to.ID != u.state.Current || err == nil
	res.Untold = u.skipped
	return res, u.conclude(to.Version, res.Changed, err)
}

func (u *Updater) accepted(id string) (Revision, error) {
	if id == "" {
		i := slices.Index(u.state.Accepted, u.state.Current)
		before := u.store.Readable(u.state.Accepted[:max(i, 0)])
		if len(before) == 0 {
			return Revision{}, fmt.Errorf("%w: none before %s", ErrUnknownRevision, u.state.Current)
		}
		return before[len(before)-1], nil
	}
	if !slices.Contains(u.state.Accepted, id) {
		return Revision{}, fmt.Errorf("%w: %q", ErrUnknownRevision, id)
	}
	return u.store.Revision(id)
}

func (u *Updater) rollback(ctx context.Context, to Revision) (Result, error) {
	res := Result{Revision: to}
	if err := u.store.Check(ctx, to); err != nil {
		if res, err = u.again(ctx, to); err != nil {
			return Result{Revision: to}, err
		}
	}
	u.enter(Writing, to.Version, nil)
	after := store.State{Delivered: u.state.Delivered, Record: time.Now().UTC()}
	return res, u.activate(ctx, u.inForce(), res.Revision, false, after)
}

// activate goes from one revision to another, tells the program unless quiet, and goes back if that fails. The state is after,
// but for the revisions.
func (u *Updater) activate(ctx context.Context, from, to Revision, quiet bool, after store.State) error {
	pending := u.state
	pending.Pending = to.ID
	if err := u.store.Save(pending); err != nil {
		return err
	}
	u.store.Step("journaled")
	err := u.store.Publish(from, to)
	told := false
	if err == nil && !quiet {
		told = true
		err = u.tell(ctx, to)
	}
	if err != nil {
		return u.back(ctx, to, from, told, err)
	}
	u.store.Step("verified")
	after.Current = to.ID
	// A revision that is in force again moves to the end, so that the one before it is the one left.
	after.Accepted = append(slices.DeleteFunc(slices.Clone(u.state.Accepted), func(id string) bool { return id == to.ID }), to.ID)
	if err := u.settle(after); err != nil {
		// In force and verified, but not on record: the next Open would undo it, so it is undone now.
		return u.back(ctx, to, from, told, err)
	}
	return nil
}

// release describes files of the folder; path is relative to it.
func (u *Updater) release(version, path string) action.Release {
	return action.Release{Version: version, Dir: u.config.Dir, Path: filepath.Join(u.config.Dir, path)}
}

// tell runs the reload chain and the verification.
func (u *Updater) tell(ctx context.Context, r Revision) error {
	release := u.release(r.Version, store.FilesPath(r.ID))
	u.enter(Reloading, r.Version, nil)
	if err := u.reload(ctx, release); err != nil {
		return fmt.Errorf("%w: %w", ErrReload, err)
	}
	u.store.Step("reloaded")
	u.enter(Verifying, r.Version, nil)
	if err := u.config.Verify.Run(ctx, release); err != nil {
		if u.skipped != "" {
			return fmt.Errorf("%w: %w; the program was not told: %s", ErrVerify, err, u.skipped)
		}
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// reload runs the chain. A step that is not possible here leaves the others to be done, and is said of the result.
func (u *Updater) reload(ctx context.Context, release action.Release) error {
	for _, a := range u.config.Reload {
		err := a.Run(ctx, release)
		switch {
		case errors.Is(err, action.ErrImpossible):
			u.skipped = err.Error()
		case err != nil:
			return err
		}
	}
	return nil
}

// back returns to the revision that was in force. It does so also when ctx has ended, which may be the cause.
func (u *Updater) back(ctx context.Context, from, to Revision, told bool, cause error) error {
	failure := &Failure{Phase: u.Status().Phase, Err: cause}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.config.RollbackTimeout)
	defer cancel()
	if err := u.store.Publish(from, to); err != nil {
		failure.RollbackErr = err
		return failure
	}
	failure.RolledBack = true
	u.store.Step("returned")
	if told {
		release := u.release(to.Version, store.FilesPath(to.ID))
		if err := u.reload(ctx, release); err != nil {
			failure.RollbackErr = fmt.Errorf("%w: %w", ErrReload, err)
		}
	}
	st := u.state
	st.Pending = ""
	failure.RollbackErr = errors.Join(failure.RollbackErr, u.settle(st))
	return failure
}
