package hotupdate

import (
	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// The types of a request and of a revision that the rooms inside share.
type (
	// Request says what the files shall be.
	Request = payload.Request
	// Source is one file or one archive of files, from a URL or at hand.
	Source = payload.Source
	// Format says how the bytes of a Source are turned into files.
	Format = payload.Format
	// Revision is one complete set of files.
	Revision = manifest.Revision
	// File is one file of a revision.
	File = manifest.File
	// Origin is where a source's bytes came from.
	Origin = manifest.Origin
)

// A plain file keeps its bytes; an archive is unpacked.
const (
	Plain = payload.Plain
	TarGz = payload.TarGz
	Zip   = payload.Zip
)

// InitialVersion is the version of files that were there before the first update.
const InitialVersion = manifest.InitialVersion
