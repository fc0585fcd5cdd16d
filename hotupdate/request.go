package hotupdate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// Request says what the files shall be.
type Request struct {
	// Version is the caller's name for it, and shown wherever the revision is.
	Version string
	// Sources are where the files come from; two may not bring the same name.
	Sources []Source
	// Keep leaves files of the current revision in place that no source brings.
	Keep bool
	// DryRun ends after the pre-check.
	DryRun bool
	// Trusted sources need no signature: where they come from is proof enough.
	Trusted bool
}

// Format says what is done with the bytes of a Source.
type Format string

// A plain file keeps its bytes; an archive is unpacked.
const (
	Plain Format = ""
	TarGz Format = "tar.gz"
	Zip   Format = "zip"
)

// Source is one file or one archive of files, from a URL or at hand.
type Source struct {
	// URL is http or https. When it is empty, Data is the content.
	URL  string
	Data []byte
	// Name is the file's path below the folder, with slashes. For an archive it is the folder that its names
	// are below, which may be empty. A plain file's name is by default the last element of the URL's path.
	Name string
	// SHA256 of the bytes as fetched, in hexadecimal; not compared when empty.
	SHA256 string
	Format Format
	// Signature of the bytes as fetched; not looked at unless Config has Keys.
	Signature []byte
}

const (
	maxVersion = 256
	maxName    = 1024
)

// Validate reports all faults at once; they are ErrInvalid.
func (r Request) Validate() error {
	var faults []error
	if r.Version == "" || len(r.Version) > maxVersion || strings.ContainsFunc(r.Version, unicode.IsControl) {
		faults = append(faults, fmt.Errorf("version: want 1 to %d bytes without control characters", maxVersion))
	}
	if len(r.Sources) == 0 {
		faults = append(faults, errors.New("no source"))
	}
	seen := map[string]bool{}
	for i, s := range r.Sources {
		if err := s.validate(); err != nil {
			faults = append(faults, fmt.Errorf("source %d: %w", i, err))
			continue
		}
		if name := s.name(); s.Format == Plain && seen[name] {
			faults = append(faults, fmt.Errorf("source %d: %s comes twice", i, name))
		} else {
			seen[name] = true
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(faults...))
	}
	return nil
}

func (s Source) validate() error {
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil {
			return err
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return fmt.Errorf("URL %q: want http or https and a host", u.Redacted())
		}
	}
	if s.SHA256 != "" {
		if b, err := hex.DecodeString(s.SHA256); err != nil || len(b) != 32 {
			return errors.New("sha256: want 64 hexadecimal digits")
		}
	}
	switch s.Format {
	case Plain:
		return checkName(s.name())
	case TarGz, Zip:
		if s.Name == "" {
			return nil
		}
		return checkName(s.name())
	default:
		return fmt.Errorf("format %q: want tar.gz, zip or none", s.Format)
	}
}

func (s Source) name() string {
	if s.Name != "" || s.Format != Plain {
		return path.Clean(s.Name)
	}
	u, err := url.Parse(s.URL)
	if err != nil || strings.HasSuffix(u.Path, "/") {
		return ""
	}
	return path.Base(u.Path)
}

// checkName admits paths that stay below the folder. What begins with two dots is ours.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "/":
		return errors.New("no file name, neither given nor in the URL")
	case len(name) > maxName:
		return fmt.Errorf("name of %d bytes: more than %d", len(name), maxName)
	case strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return fmt.Errorf("name %q: control characters and backslashes are not allowed", name)
	case !filepath.IsLocal(name) || name != path.Clean(name):
		return fmt.Errorf("name %q: not a plain path below the folder", name)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf("name %q: names that begin with two dots are reserved", name)
	}
	return nil
}
