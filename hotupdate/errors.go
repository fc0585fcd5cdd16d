package hotupdate

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/hotupdate/archive"
	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

// Errors that callers distinguish.
var (
	// ErrInvalid means that the request is invalid, or that its names collide with existing files.
	ErrInvalid = payload.ErrInvalid
	// ErrBusy means that somebody else has the Lock.
	ErrBusy = errors.New("another update is under way")
	// ErrRefused means that the address, host or scheme of a source is not allowed.
	ErrRefused = fetch.ErrRefused
	// ErrFetch means that the content could not be fetched from the source.
	ErrFetch = fetch.ErrFetch
	// ErrTooLarge means that a limit on bytes or files is exceeded.
	ErrTooLarge = payload.ErrTooLarge
	// ErrDigest means that the content does not have the expected digest.
	ErrDigest = errors.New("digest does not match")
	// ErrSignature means that none of the configured keys has signed the content.
	ErrSignature = payload.ErrSignature
	// ErrArchive means that the archive is damaged or holds what may not be unpacked.
	ErrArchive = archive.ErrArchive
	// ErrPrecheck means that the candidate was rejected before anything was changed.
	ErrPrecheck = errors.New("candidate rejected")
	// ErrReload means that the program could not be reloaded.
	ErrReload = errors.New("reload")
	// ErrVerify means that the verification with the new files failed.
	ErrVerify = errors.New("verify")
	// ErrUnknownRevision means that there is no such revision.
	ErrUnknownRevision = store.ErrUnknownRevision
	// ErrTampered means that the files of a revision have been changed since they were accepted.
	ErrTampered = store.ErrTampered
)

// Failure describes an update that has failed.
type Failure struct {
	Phase Phase
	Err   error
	// RolledBack reports that the new files were in place, and that the old ones have been restored and the program
	// reloaded.
	RolledBack bool
	// RollbackErr is why the rollback failed at least in part. The old files may be in place nevertheless.
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

// Unwrap returns both errors to errors.Is.
func (f *Failure) Unwrap() []error {
	if f.RollbackErr == nil {
		return []error{f.Err}
	}
	return []error{f.Err, f.RollbackErr}
}

// Permanent reports whether a request that failed with err will fail again at any later time.
func Permanent(err error) bool {
	for _, kind := range []error{ErrInvalid, ErrRefused, ErrDigest, ErrSignature, ErrTooLarge, ErrArchive, ErrPrecheck} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
