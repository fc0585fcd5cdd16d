package store

import (
	"errors"

	"github.com/refit-project/refit/hotupdate/manifest"
)

var (
	// ErrUnknownRevision means that there is no such revision to go back to.
	ErrUnknownRevision = errors.New("no such revision")
	// ErrTampered means that a revision's files are no longer those that were accepted.
	ErrTampered = errors.New("revision was changed on disk")
)

// The types of what is stored.
type (
	// Revision is one complete set of files.
	Revision = manifest.Revision
	// File is one file of a revision.
	File = manifest.File
	// Origin is where a source's bytes came from.
	Origin = manifest.Origin
	// Requested is what requests have brought of a revision.
	Requested = manifest.Requested
)
