package hotupdate

import (
	"fmt"
	"slices"
	"time"
)

// requested is Revision.Requested of next, which a request makes of current.
func (u *Updater) requested(req Request, current, next Revision) ([]Origin, error) {
	var all []Origin
	if req.Keep {
		all = slices.DeleteFunc(slices.Clone(current.Requested), func(before Origin) bool {
			gone := before.Format == Plain && !next.Has(before.Name, before.SHA256)
			return gone || req.Trigger == "" && slices.ContainsFunc(next.Sources, func(o Origin) bool {
				return o.Name == before.Name && o.Format == before.Format
			})
		})
	}
	if req.Trigger == "" {
		all = append(all, next.Sources...)
	}
	if most := u.config.Limits.MaxFiles; len(all) > most { // as an archive without files can be sent under any name
		return nil, fmt.Errorf("%w: the files come from more than %d sources", ErrTooLarge, most)
	}
	return all, nil
}

// Unrecorded is when a request with Record was accepted, or a revision gone back to, that has still to be recorded; zero:
// none has.
func (u *Updater) Unrecorded() time.Time {
	u.mu.Lock()
	at := u.state.Record
	u.mu.Unlock()
	if at.Equal(u.store.Recorded()) {
		return time.Time{}
	}
	return at
}

// Recorded says that what was accepted then has been recorded. It does not wait for an update under way.
func (u *Updater) Recorded(at time.Time) error { return u.store.SaveRecorded(at) }
