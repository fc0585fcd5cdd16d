package hotupdate

import "context"

// Lock is the exclusive right to change the folder of an Updater. Its holder makes changes one after another until Release.
type Lock struct{ *Updater }

// Acquire waits until nobody else has the Lock. The error is the error of ctx.
func (u *Updater) Acquire(ctx context.Context) (*Lock, error) {
	select {
	case u.locked <- struct{}{}:
		return &Lock{u}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TryAcquire is Acquire without waiting: the error is ErrBusy if somebody else has the Lock.
func (u *Updater) TryAcquire() (*Lock, error) {
	select {
	case u.locked <- struct{}{}:
		return &Lock{u}, nil
	default:
		return nil, ErrBusy
	}
}

// Release ends the exclusive right. It is called once.
func (l *Lock) Release() { <-l.locked }

// Reload reloads the program for the current revision and verifies it, such as after a restart of the program or of this
// process.
func (l *Lock) Reload(ctx context.Context) error {
	r, err := l.store.Revision(l.state.Current)
	if err != nil {
		return err
	}
	l.skipped = ""
	err = l.reloadAndVerify(ctx, r)
	if err == nil && l.state.ReloadPending {
		st := l.state
		st.ReloadPending = false
		err = l.save(st)
	}
	return l.finish(r.Version, true, err)
}
