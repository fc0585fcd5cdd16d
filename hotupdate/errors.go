package hotupdate

import (
	"errors"
	"fmt"
)

// What callers branch on.
var (
	// ErrInvalid: the request makes no sense, or its names collide with what is there.
	ErrInvalid = errors.New("invalid request")
	// ErrBusy: another update is under way; there is one at a time.
	ErrBusy = errors.New("another update is under way")
	// ErrRefused: the address, host or scheme may not be fetched from.
	ErrRefused = errors.New("source refused")
	// ErrFetch: the source did not deliver.
	ErrFetch = errors.New("fetch")
	// ErrTooLarge: a limit on bytes or files is exceeded.
	ErrTooLarge = errors.New("too large")
	// ErrDigest: the content is not the one asked for.
	ErrDigest = errors.New("digest does not match")
	// ErrSignature: nobody whose key is known has signed the content.
	ErrSignature = errors.New("signature")
	// ErrArchive: the archive is damaged or holds what may not be unpacked.
	ErrArchive = errors.New("archive")
	// ErrPrecheck: the candidate was rejected before anything changed.
	ErrPrecheck = errors.New("candidate rejected")
	// ErrReload: the program could not be told.
	ErrReload = errors.New("reload")
	// ErrVerify: the program was not well with the new files.
	ErrVerify = errors.New("verify")
	// ErrUnknownRevision: there is no such revision to go back to.
	ErrUnknownRevision = errors.New("no such revision")
	// ErrTampered: a revision's files are no longer those that were accepted.
	ErrTampered = errors.New("revision was changed on disk")
)

// Failure is how an update ended that did not succeed.
type Failure struct {
	Phase Phase
	Err   error
	// RolledBack says that new files were in place and the old ones are again, the program reloaded with them.
	RolledBack bool
	// RollbackErr is why the way back did not succeed entirely. The old files may be in place all the same.
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
