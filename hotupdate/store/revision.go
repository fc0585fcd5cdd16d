package hotupdate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
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
}

// InitialVersion is the version of what was found, which nobody named.
const InitialVersion = "initial"

// Origin is where a source's bytes came from.
type Origin struct {
	// URL is without user, password and query, which may be credentials.
	URL    string `json:"url,omitempty"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	ETag   string `json:"etag,omitempty"`
	Format Format `json:"format,omitempty"`
	// Address is the SHA-256 of the whole URL: to know it again without keeping it.
	Address string `json:"address,omitempty"`
}

// File is one file of a revision; Name is its path below the folder.
type File struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable,omitempty"`
}

// Size is of all files, in bytes.
func (r Revision) Size() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

func (r Revision) names() map[string]bool {
	names := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		names[f.Name] = true
	}
	return names
}

// digest is the same for the same names and contents, whatever they came from.
func digest(files []File) string {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %s %t\n", f.Name, f.SHA256, f.Executable)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func addressOf(url string) string {
	if url == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}
