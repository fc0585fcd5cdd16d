package hotupdate

import (
	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// Types of a request and of a revision that the packages below share.
type (
	// Request says which files are to be in force.
	Request = payload.Request
	// Source is one file or one archive of files, from a URL or from memory.
	Source = payload.Source
	// Format says how the bytes of a Source are turned into files.
	Format = payload.Format
	// Revision is one complete set of files.
	Revision = manifest.Revision
	// File is one file of a revision.
	File = manifest.File
	// Origin is where the bytes of a source came from.
	Origin = manifest.Origin
)

// A plain file keeps its bytes; an archive is unpacked.
const (
	Plain = payload.Plain
	TarGz = payload.TarGz
	Zip   = payload.Zip
)

// InitialVersion is the version of the files that existed before the first update.
const InitialVersion = manifest.InitialVersion
