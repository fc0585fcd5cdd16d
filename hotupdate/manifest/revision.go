// Package manifest defines a revision: its files, where they came from, and the digest of all of them.
//
// It contains: the types of a manifest as written to disk, and pure functions of them. Reading and writing must stay out.
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
	// ID is the name of its folder. IDs are ordered by time.
	ID string `json:"id"`
	// Version is the version of the request. The initial files have InitialVersion.
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	// Digest is the digest of all names and contents, in hexadecimal.
	Digest  string   `json:"digest"`
	Sources []Origin `json:"sources,omitempty"`
	Files   []File   `json:"files"`
	// Kept means that some of the files come from the previous revision, not from Sources.
	Kept bool `json:"kept,omitempty"`
	// Requested describes how to fetch the files into another folder. It is zero for the initial files, and in manifests of
	// earlier versions of this program.
	Requested Requested `json:"requested,omitzero"`
}

// Requested describes what requests have brought, without the files of triggers.
type Requested struct {
	// Digest of the files of the sources: files of the revision, and Hidden.
	Digest string `json:"digest"`
	// Sources are the sources of the request, after the sources of earlier requests whose files were kept. Files of a later
	// source replace files of an earlier one.
	Sources []Origin `json:"sources,omitempty"`
	// Hidden are files of archives that were replaced by files of triggers.
	Hidden []File `json:"hidden,omitempty"`
}

// InitialVersion is the version of the files that existed before the first update.
const InitialVersion = "initial"

// Origin is where the bytes of a source came from.
type Origin struct {
	// URL has no user and password, and no query that may contain credentials. Stripped means that one of them was removed.
	URL      string         `json:"url,omitempty"`
	Stripped bool           `json:"stripped,omitempty"`
	Name     string         `json:"name"`
	SHA256   string         `json:"sha256"`
	ETag     string         `json:"etag,omitempty"`
	Format   payload.Format `json:"format,omitempty"`
	// Address is the SHA-256 of the whole URL. It recognizes the URL without storing it.
	Address string `json:"address,omitempty"`
	// Mode and Signature are as given with the source.
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
	// Archive is the beginning of the SHA-256 of the archive with the file, see From.
	Archive string `json:"archive,omitempty"`
}

// ArchiveDigits is enough to distinguish the archives of one revision.
const ArchiveDigits = 12

// Normalized writes the two usual modes as Executable, as earlier manifests do.
func (f File) Normalized() File {
	switch f.Mode {
	case 0, 0o644:
		f.Mode = 0
	case 0o755:
		f.Mode, f.Executable = 0, true
	}
	return f
}

// Perm returns the permission bits of the file.
func (f File) Perm() fs.FileMode {
	switch {
	case f.Mode != 0:
		return f.Mode & fs.ModePerm
	case f.Executable:
		return 0o755
	}
	return 0o644
}

// Size returns the size of all files, in bytes.
func (r Revision) Size() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

// Names returns the names of all files.
func (r Revision) Names() map[string]bool {
	names := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		names[f.Name] = true
	}
	return names
}

// Digest returns the digest of names and contents. Where they came from does not matter.
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

// From reports whether a source contains the file.
func (f File) From(source Origin) bool {
	if source.Format == payload.Plain {
		return f.Name == source.Name && f.SHA256 == source.SHA256
	}
	return f.Archive != "" && strings.HasPrefix(source.SHA256, f.Archive)
}

// Brought reports whether a source contains one of the files.
func (r Revision) Brought(source Origin) bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return f.From(source) })
}

// WithoutRequested returns the revision with only the files that no request has brought.
func (r Revision) WithoutRequested() Revision {
	r.Files = slices.DeleteFunc(slices.Clone(r.Files), func(f File) bool {
		return slices.ContainsFunc(r.Requested.Sources, f.From)
	})
	r.Requested = Requested{Digest: Digest(nil)}
	return r
}

// Unrequested reports whether no request has brought any of the files: they are initial files or come from triggers.
func (r Revision) Unrequested() bool {
	return r.Version == InitialVersion || r.Requested.Digest == Digest(nil)
}
