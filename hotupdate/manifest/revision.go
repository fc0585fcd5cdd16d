// Package manifest says what a revision is: its files, where they came from, and the digest over all of them.
//
// It contains: the types of a manifest, as they are written to disk, and pure functions of them. Reading and writing must
// stay out.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate/payload"
)

// Revision is one complete set of files.
type Revision struct {
	// ID names its folder and orders revisions by time.
	ID string `json:"id"`
	// Version is the request's. Files that were there before the first update have InitialVersion.
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	// Digest is over all names and contents, in hexadecimal.
	Digest  string   `json:"digest"`
	Sources []Origin `json:"sources,omitempty"`
	Files   []File   `json:"files"`
	// Kept says that some of the files are of the revision before, and not of Sources.
	Kept bool `json:"kept,omitempty"`
	// Requested is how to get the files in another folder; zero for files that were there before the first update, and in
	// manifests of earlier versions of this program.
	Requested Requested `json:"requested,omitzero"`
}

// Requested is what requests have brought of a revision, without what triggers have.
type Requested struct {
	// Digest of the files that the sources bring: those of the revision, and Hidden.
	Digest string `json:"digest"`
	// Sources are those of the request, after those of earlier requests whose files were kept. Files of a later one replace
	// those of an earlier one.
	Sources []Origin `json:"sources,omitempty"`
	// Hidden are files of archives that files of triggers have replaced.
	Hidden []File `json:"hidden,omitempty"`
}

// InitialVersion is the version of files that were there before the first update.
const InitialVersion = "initial"

// Origin is where a source's bytes came from.
type Origin struct {
	// URL is without user and password, and without a query that may hold credentials; Stripped says that it lacks one of them.
	URL      string         `json:"url,omitempty"`
	Stripped bool           `json:"stripped,omitempty"`
	Name     string         `json:"name"`
	SHA256   string         `json:"sha256"`
	ETag     string         `json:"etag,omitempty"`
	Format   payload.Format `json:"format,omitempty"`
	// Address is the SHA-256 of the whole URL: to recognise it without keeping it.
	Address string `json:"address,omitempty"`
	// Mode and Signature as given with the source.
	Mode      fs.FileMode `json:"mode,omitempty"`
	Signature []byte      `json:"signature,omitempty"`
}

// File is one file of a revision; Name is its path below the folder.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Executable means mode 0755, and without it 0644, unless Mode says otherwise.
	Executable bool        `json:"executable,omitempty"`
	Mode       fs.FileMode `json:"mode,omitempty"`
	// Archive is the beginning of the SHA-256 of the archive that brought the file, see From.
	Archive string `json:"archive,omitempty"`
}

// ArchiveDigits are enough to tell archives of one revision apart.
const ArchiveDigits = 12

// Normalized writes the two usual modes as Executable, as manifests always had them.
func (f File) Normalized() File {
	switch f.Mode {
	case 0, 0o644:
		f.Mode = 0
	case 0o755:
		f.Mode, f.Executable = 0, true
	}
	return f
}

// Perm are the permission bits of the file.
func (f File) Perm() fs.FileMode {
	switch {
	case f.Mode != 0:
		return f.Mode & fs.ModePerm
	case f.Executable:
		return 0o755
	}
	return 0o644
}

// Size is of all files, in bytes.
func (r Revision) Size() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

// Names are those of all files.
func (r Revision) Names() map[string]bool {
	names := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		names[f.Name] = true
	}
	return names
}

// Digest is the same for the same names and contents, whatever they came from.
func Digest(files []File) string {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %s %t", f.Name, f.SHA256, f.Executable)
		if f.Mode != 0 {
			fmt.Fprintf(h, " %o", f.Mode)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// From reports whether a source has brought the file.
func (f File) From(source Origin) bool {
	if source.Format == payload.Plain {
		return f.Name == source.Name && f.SHA256 == source.SHA256
	}
	return f.Archive != "" && strings.HasPrefix(source.SHA256, f.Archive)
}

// Brought reports whether a source has brought one of the files.
func (r Revision) Brought(source Origin) bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return f.From(source) })
}

// WithoutRequested is the revision with only those files that no request has brought.
func (r Revision) WithoutRequested() Revision {
	r.Files = slices.DeleteFunc(slices.Clone(r.Files), func(f File) bool {
		return slices.ContainsFunc(r.Requested.Sources, f.From)
	})
	r.Requested = Requested{Digest: Digest(nil)}
	return r
}

// Unrequested reports that no request has brought any of the files: they were there before, or triggers have brought them.
func (r Revision) Unrequested() bool {
	return r.Version == InitialVersion || r.Requested.Digest == Digest(nil)
}
