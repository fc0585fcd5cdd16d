package hotupdate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

// Request says what the files shall be.
type Request struct {
	// Version is the caller's name for it, and shown wherever the revision is.
	Version string
	// Sources are where the files come from. Two may not bring the same name, unless the request is Layered: then files of
	// a later one replace those of an earlier one.
	Sources []Source
	Layered bool
	// Keep leaves files of the current revision in place that no source brings.
	Keep bool
	// DryRun ends after the pre-check.
	DryRun bool
	// Digest is the Revision.Requested.Digest that must result; not compared when empty.
	Digest string
	// Trigger names a source that sends a request for every change of its content, and TriggerDigest identifies the
	// content. Both are recorded when the request has been accepted, see Updater.Delivered. Files that the trigger
	// brought before and does not bring any more are removed.
	Trigger, TriggerDigest string
	// Quiet puts the files in place without telling the program, which has not been started yet. With TellLater Reload is to
	// follow, and until it has, Untold is true, also of the next Updater of the folder.
	Quiet, TellLater bool
	// Record: when the request is accepted, Unrecorded says so until Recorded is called, also of the next Updater of the folder.
	Record bool
	// Trusted sources need no signature: where they come from is proof enough.
	Trusted bool
}

// The types of a request and of a revision that the rooms inside share.
type (
	// Format says how the bytes of a Source are turned into files.
	Format = payload.Format
	// Revision is one complete set of files.
	Revision = store.Revision
	// File is one file of a revision.
	File = store.File
	// Origin is where a source's bytes came from.
	Origin = store.Origin
)

// A plain file keeps its bytes; an archive is unpacked.
const (
	Plain = payload.Plain
	TarGz = payload.TarGz
	Zip   = payload.Zip
)

// InitialVersion is the version of files that were there before the first update.
const InitialVersion = store.InitialVersion

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
	// Mode of a plain file: permission bits, 0644 when zero. What an archive holds is 0644, or 0755 if executable.
	Mode fs.FileMode
	// Signature of the bytes as fetched; not looked at unless Config has Keys.
	Signature []byte
}

const maxVersion = 256

// Validate reports all faults at once; they are ErrInvalid.
func (r Request) Validate() error {
	var faults []error
	if r.Version == "" || len(r.Version) > maxVersion || strings.ContainsFunc(r.Version, unicode.IsControl) {
		faults = append(faults, fmt.Errorf("version: want 1 to %d bytes without control characters", maxVersion))
	}
	if len(r.Sources) == 0 && r.Trigger == "" {
		faults = append(faults, errors.New("no source"))
	}
	seen := map[string]bool{}
	for i, s := range r.Sources {
		if err := s.validate(); err != nil {
			faults = append(faults, fmt.Errorf("source %d: %w", i, err))
			continue
		}
		if name := s.name(); s.Format == Plain && seen[name] {
			faults = append(faults, fmt.Errorf("source %d: %s is given twice", i, name))
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
			return errors.New("URL: cannot be parsed") // the error would hold it, and it may hold a password
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			shown, _ := public(s.URL, false)
			return fmt.Errorf("URL %q: want http or https and a host", shown)
		}
	}
	if s.SHA256 != "" {
		if b, err := hex.DecodeString(s.SHA256); err != nil || len(b) != 32 {
			return errors.New("sha256: want 64 hexadecimal digits")
		}
	}
	if s.Mode&^fs.ModePerm != 0 || s.Mode != 0 && s.Mode&0o400 == 0 {
		return fmt.Errorf("mode %#o: want permission bits, readable by the owner", uint32(s.Mode))
	}
	switch s.Format {
	case Plain:
		return payload.CheckName(s.name())
	case TarGz, Zip:
		if s.name() == "" {
			return nil
		}
		return payload.CheckName(s.name())
	default:
		return fmt.Errorf("format %q: want tar.gz, zip or none", s.Format)
	}
}

func (s Source) name() string {
	if name := path.Clean(s.Name); name != "." {
		return name
	}
	if s.Format != Plain {
		return "" // the folder itself
	}
	u, err := url.Parse(s.URL)
	if err != nil || strings.HasSuffix(u.Path, "/") {
		return ""
	}
	return path.Base(u.Path)
}
