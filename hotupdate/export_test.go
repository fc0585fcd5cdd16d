package hotupdate

import "context"

// OpenWithSteps is Open with a hook that is called after each step that a kill could follow.
func OpenWithSteps(ctx context.Context, config Config, step func(string)) (*Updater, error) {
	return open(ctx, config, step)
}

// Apply is Lock.Apply for a test that makes one change.
func (u *Updater) Apply(ctx context.Context, req Request) (res Result, err error) {
	return res, u.locking(func(l *Lock) error { res, err = l.Apply(ctx, req); return err })
}

// Rollback is Lock.Rollback for a test that makes one change.
func (u *Updater) Rollback(ctx context.Context, id string) (res Result, err error) {
	return res, u.locking(func(l *Lock) error { res, err = l.Rollback(ctx, id); return err })
}

// Reload is Lock.Reload for a test that makes one change.
func (u *Updater) Reload(ctx context.Context) error {
	return u.locking(func(l *Lock) error { return l.Reload(ctx) })
}

func (u *Updater) locking(do func(*Lock) error) error {
	l, err := u.TryAcquire()
	if err != nil {
		return err
	}
	defer l.Release()
	return do(l)
}
