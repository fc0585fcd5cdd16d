// Package payload has a request with its sources, and the rules for them: names of files, sizes, formats, and signatures.
//
// It contains: pure checks and a reader that enforces a size limit. Downloading, unpacking and writing must stay out.
package payload

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrInvalid means that a request, or a name in it, is invalid.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLarge means that a limit on bytes or files is exceeded.
	ErrTooLarge = errors.New("too large")
)

// Format says how the bytes of a source are turned into files.
type Format string

// A plain file keeps its bytes; an archive is unpacked.
const (
	Plain Format = ""
	TarGz Format = "tar.gz"
	Zip   Format = "zip"
)

// Limits bound what one request may write with all its sources.
type Limits struct {
	// MaxFiles bounds the number of files and of their folders; 10,000 when zero.
	MaxFiles int
	// MaxUnpacked is in bytes; 1 GiB when zero.
	MaxUnpacked int64
}

// WithDefaults replaces zero values.
func (l Limits) WithDefaults() Limits {
	if l.MaxFiles == 0 {
		l.MaxFiles = 10_000
	}
	if l.MaxUnpacked == 0 {
		l.MaxUnpacked = 1 << 30
	}
	return l
}

const (
	maxName = 1024
	// maxElement is the maximum length of the name of a folder or file in a file system.
	maxElement = 255
)

// CheckName accepts relative paths that stay below the folder. Names that begin with two dots are reserved: kubelet uses
// them in volumes, and so does this program.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "/":
		return errors.New("no file name, neither given nor in the URL")
	case len(name) > maxName:
		return fmt.Errorf("name of %d bytes: more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("name %q: not UTF-8", name)
	case slices.ContainsFunc(strings.Split(name, "/"), func(element string) bool { return len(element) > maxElement }):
		return fmt.Errorf("name %.40q...: more than %d bytes between slashes", name, maxElement)
	case strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fmt.Errorf("name %q: control characters and backslashes are not allowed", name)
	case !filepath.IsLocal(name) || name != path.Clean(name):
		return fmt.Errorf("name %q: not a plain path below the folder", name)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf("name %q: names that begin with two dots are reserved", name)
	}
	return nil
}

// LimitReader reads at most limit bytes. If there are more, it fails with ErrTooLarge, where io.LimitReader would report
// the end.
func LimitReader(from io.Reader, left, limit int64) io.Reader {
	return &limited{from: from, left: left, limit: limit}
}

type limited struct {
	from        io.Reader
	left, limit int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	// Read one byte beyond the limit, to detect a body that is longer.
	n, err := l.from.Read(b[:min(int64(len(b))-1, l.left)+1]) // left may be the largest int64
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	return n, err
}
