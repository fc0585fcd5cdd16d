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

// Rollback puts an accepted revision in force again: the one with this ID or, if the ID is empty, the one before the
// current revision. The program is reloaded and verified as by Apply. After a failure the current revision stays in force.
func (l *Lock) Rollback(ctx context.Context, id string) (Result, error) {
	to, err := l.acceptedRevision(id)
	if err != nil {
		return Result{}, err
	}
	l.enter(Checking, to.Version, nil)
	l.skipped = ""
	res, err := l.rollback(ctx, to)
	res.Changed = to.ID != l.state.Current || err == nil
	res.ReloadSkipped = l.skipped
	return res, l.finish(to.Version, res.Changed, err)
}

func (u *Updater) acceptedRevision(id string) (Revision, error) {
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
		if res, err = u.rebuild(ctx, to); err != nil {
			return Result{Revision: to}, err
		}
	}
	current := u.inForce()
	all := res.Revision
	all.Sources = nil // a roll back sends no file
	res.Mended = merged(res.Mended, u.replacedLinks(current, all))
	u.enter(Writing, to.Version, nil)
	after := store.State{Delivered: u.state.Delivered, ToRecord: time.Now().UTC()}
	return res, u.activate(ctx, current, res.Revision, false, after)
}

// activate replaces revision from by to, reloads the program unless quiet, and goes back to from if that fails. On success
// it stores after as the state, completed with the IDs of the revisions.
func (u *Updater) activate(ctx context.Context, from, to Revision, quiet bool, after store.State) error {
	pending := u.state
	pending.Pending = to.ID
	if err := u.store.Save(pending); err != nil {
		return err
	}
	u.store.Step("journaled")
	err := u.store.Publish(from, to)
	reloaded := false
	if err == nil && !quiet {
		reloaded = true
		err = u.reloadAndVerify(ctx, to)
	}
	if err != nil {
		return u.restorePrevious(ctx, to, from, reloaded, err)
	}
	u.store.Step("verified")
	after.Current = to.ID
	// A revision that is put in force again moves to the end of the list, so that a roll back returns to the one before it.
	after.Accepted = append(slices.DeleteFunc(slices.Clone(u.state.Accepted), func(id string) bool { return id == to.ID }), to.ID)
	if err := u.commit(after); err != nil {
		// The files are in force and verified, but the state is not stored: the next Open would undo the update, so it is
		// undone now.
		return u.restorePrevious(ctx, to, from, reloaded, err)
	}
	return nil
}

// release describes the files at path, which is relative to the folder.
func (u *Updater) release(version, path string) action.Release {
	return action.Release{Version: version, Dir: u.config.Dir, Path: filepath.Join(u.config.Dir, path)}
}

// reloadAndVerify runs the reload actions and the verification.
func (u *Updater) reloadAndVerify(ctx context.Context, r Revision) error {
	release := u.release(r.Version, store.FilesPath(r.ID))
	u.enter(Reloading, r.Version, nil)
	if err := u.reload(ctx, release); err != nil {
		return fmt.Errorf("%w: %w", ErrReload, err)
	}
	u.store.Step("reloaded")
	u.enter(Verifying, r.Version, nil)
	if err := u.config.Verify.Run(ctx, release); err != nil {
		if u.skipped != "" {
			return fmt.Errorf("%w: %w; the program was not reloaded: %s", ErrVerify, err, u.skipped)
		}
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// reload runs the reload actions. An action that is impossible here is skipped; the result of the update names it.
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

// restorePrevious puts the previous revision in force again, also if ctx has ended, since that may be the cause of the failure.
func (u *Updater) restorePrevious(ctx context.Context, from, to Revision, reloaded bool, cause error) error {
	failure := &Failure{Phase: u.Status().Phase, Err: cause}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.config.RollbackTimeout)
	defer cancel()
	if err := u.store.Publish(from, to); err != nil {
		failure.RollbackErr = err
		return failure
	}
	failure.RolledBack = true
	u.store.Step("returned")
	if reloaded {
		release := u.release(to.Version, store.FilesPath(to.ID))
		if err := u.reload(ctx, release); err != nil {
			failure.RollbackErr = fmt.Errorf("%w: %w", ErrReload, err)
		}
	}
	st := u.state
	st.Pending = ""
	failure.RollbackErr = errors.Join(failure.RollbackErr, u.commit(st))
	return failure
}
