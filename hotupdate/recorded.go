package hotupdate

import (
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/manifest"
)

// requested returns Revision.Requested of next, which a request creates from current.
func requested(req Request, current, next Revision) manifest.Requested {
	var before manifest.Requested
	if req.Keep {
		if before = current.Requested; before.Digest == "" && current.Version != InitialVersion {
			return before // the origin of the files is not known
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

// Unrecorded returns when the current revision was accepted or rolled back to if it still has to be recorded, else the zero
// time.
func (u *Updater) Unrecorded() time.Time {
	u.mu.Lock()
	at := u.state.ToRecord
	u.mu.Unlock()
	if at.Equal(u.store.Recorded()) {
		return time.Time{}
	}
	return at
}

// Recorded stores that the revision accepted at this time has been recorded. It does not wait for an update in progress.
func (u *Updater) Recorded(at time.Time) error { return u.store.SaveRecorded(at) }
