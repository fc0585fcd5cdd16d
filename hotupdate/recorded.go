package hotupdate

import (
	"maps"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/store"
)

// requested is Revision.Requested of next, which a request makes of current. delivered is the record of triggers then.
func requested(req Request, current, next Revision, delivered map[string]store.Delivery) store.Requested {
	var made store.Requested
	if req.Keep {
		if current.Requested.Digest == "" && current.Version != InitialVersion {
			return made // it is not known where the files are from
		}
		made.Sources = slices.DeleteFunc(slices.Clone(current.Requested.Sources), func(before Origin) bool {
			return !next.Brought(before) || req.Trigger == "" && slices.ContainsFunc(next.Sources, func(o Origin) bool {
				return o.Name == before.Name && o.Format == before.Format && o.SHA256 == before.SHA256
			})
		})
	}
	if req.Trigger == "" {
		made.Sources = append(made.Sources, next.Sources...)
	}
	files := map[string]string{}
	for _, d := range delivered {
		maps.Copy(files, d.Files)
	}
	made.Digest = next.DigestWithout(files)
	return made
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
