package hotupdate

import (
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/manifest"
)

// requested is Revision.Requested of next, which a request makes of current.
func requested(req Request, current, next Revision) manifest.Requested {
	var before manifest.Requested
	if req.Keep {
		if before = current.Requested; before.Digest == "" && current.Version != InitialVersion {
			return before // it is not known where the files are from
		}
	}
	var made manifest.Requested
	for _, o := range before.Sources {
		again := func(other Origin) bool {
			return other.Name == o.Name && other.Format == o.Format && other.SHA256 == o.SHA256
		}
		if next.Brought(o) && (req.Trigger != "" || !slices.ContainsFunc(next.Sources, again)) {
			made.Sources = append(made.Sources, o)
		}
	}
	if req.Trigger == "" {
		made.Sources = append(made.Sources, next.Sources...)
	}
	from := func(f File) bool { return slices.ContainsFunc(made.Sources, f.From) }
	files := slices.DeleteFunc(slices.Clone(next.Files), func(f File) bool { return !from(f) })
	if req.Keep {
		seen := manifest.NewLayer(files)
		for _, f := range slices.Concat(current.Files, before.Hidden) {
			if f.Archive != "" && from(f) && !seen.Hides(f.Name) {
				made.Hidden = append(made.Hidden, f)
			}
		}
	}
	made.Digest = manifest.Digest(slices.Concat(files, made.Hidden))
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
