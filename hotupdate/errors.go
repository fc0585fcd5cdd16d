package hotupdate

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/hotupdate/archive"
	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

// What callers branch on.
var (
	// ErrInvalid means that the request makes no sense, or that its names collide with what is there.
	ErrInvalid = payload.ErrInvalid
	// ErrBusy means that another update is under way; there is one at a time.
	ErrBusy = errors.New("another update is under way")
	// ErrRefused means that the address, host or scheme may not be fetched from.
	ErrRefused = fetch.ErrRefused
	// ErrFetch means that the source did not deliver.
	ErrFetch = fetch.ErrFetch
	// ErrTooLarge means that a limit on bytes or files is exceeded.
	ErrTooLarge = payload.ErrTooLarge
	// ErrDigest means that the content is not the one asked for.
	ErrDigest = errors.New("digest does not match")
	// ErrSignature means that none of the configured keys has signed the content.
	ErrSignature = payload.ErrSignature
	// ErrArchive means that the archive is damaged or holds what may not be unpacked.
	ErrArchive = archive.ErrArchive
	// ErrPrecheck means that the candidate was rejected before anything changed.
	ErrPrecheck = errors.New("candidate rejected")
	// ErrReload means that the program could not be told.
	ErrReload = errors.New("reload")
	// ErrVerify means that the verification failed with the new files.
	ErrVerify = errors.New("verify")
	// ErrUnknownRevision means that there is no such revision to go back to.
	ErrUnknownRevision = store.ErrUnknownRevision
	// ErrTampered means that a revision's files are no longer those that were accepted.
	ErrTampered = store.ErrTampered
)

// Failure is how an update ended that did not succeed.
type Failure struct {
	Phase Phase
	Err   error
	// RolledBack says that new files were in place and the old ones are again, the program reloaded with them.
	RolledBack bool
	// RollbackErr is why the rollback did not succeed entirely. The old files may be in place nevertheless.
	RollbackErr error
}

func (f *Failure) Error() string {
	s := fmt.Sprintf("%s: %s", f.Phase, f.Err)
	switch {
	case f.RollbackErr != nil:
		s += fmt.Sprintf(" (roll back: %s)", f.RollbackErr)
	case f.RolledBack:
		s += " (rolled back)"
	}
	return s
}

// Unwrap gives both causes to errors.Is.
func (f *Failure) Unwrap() []error {
	if f.RollbackErr == nil {
		return []error{f.Err}
	}
	return []error{f.Err, f.RollbackErr}
}

// Permanent reports that a request which failed with err will fail again, whenever it is tried.
func Permanent(err error) bool {
	for _, kind := range []error{ErrInvalid, ErrRefused, ErrDigest, ErrSignature, ErrTooLarge, ErrArchive, ErrPrecheck} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
