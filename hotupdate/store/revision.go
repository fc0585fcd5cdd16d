package store

import (
	"errors"

	"github.com/refit-project/refit/hotupdate/manifest"
)

var (
	// ErrUnknownRevision means that there is no such revision.
	ErrUnknownRevision = errors.New("no such revision")
	// ErrTampered means that a revision's files have been changed since they were accepted.
	ErrTampered = errors.New("revision was changed on disk")
)

// Types of the manifest.
type (
	// Revision is one complete set of files.
	Revision = manifest.Revision
	// File is one file of a revision.
	File = manifest.File
	// Origin is where the bytes of a source came from.
	Origin = manifest.Origin
	// Requested describes what requests have brought.
	Requested = manifest.Requested
)
