package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	// Afresh: with Keep, of the current revision only files that no request has brought stay, as those of triggers do.
	Afresh bool
	// Provisional: the revision is not what is to be in force, see hotupdate.Updater.Provisional.
	Provisional bool
	// DryRun ends after the pre-check.
	DryRun bool
	// Digest is the manifest.Requested.Digest that must result; not compared when empty.
	Digest string
	// Trigger names a source that sends a request for every change of its content, and TriggerDigest identifies the
	// content. Both are recorded when the request has been accepted, see hotupdate.Updater.Delivered. Files that the trigger
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
	if r.Version == "" || len(r.Version) > maxVersion || !utf8.ValidString(r.Version) || strings.ContainsFunc(r.Version, unicode.IsControl) {
		faults = append(faults, fmt.Errorf("version: want 1 to %d bytes of UTF-8 without control characters", maxVersion))
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
		if name := s.Path(); s.Format == Plain && seen[name] {
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
		if err != nil || !utf8.ValidString(s.URL) {
			return errors.New("URL: cannot be parsed") // the error would hold it, and it may hold a password
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			shown, _ := Public(s.URL, false)
			return fmt.Errorf("URL %q: want http or https and a host", shown)
		}
	}
	if s.URL != "" && s.Data != nil {
		return errors.New("want exactly one of URL and data")
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
		return CheckName(s.Path())
	case TarGz, Zip:
		if s.Path() == "" {
			return nil
		}
		return CheckName(s.Path())
	default:
		return fmt.Errorf("format %q: want tar.gz, zip or none", s.Format)
	}
}

// Over is the request with other sources below its own: it brings their files too, but for those that it has itself, and of
// the revision in force only files that no request has brought stay.
func (r Request) Over(below []Source) Request {
	own := map[string]bool{}
	for _, s := range r.Sources {
		own[s.Path()] = s.Format == Plain
	}
	kept := slices.DeleteFunc(slices.Clone(below), func(s Source) bool { return s.Format == Plain && own[s.Path()] })
	r.Sources, r.Layered, r.Afresh = append(kept, r.Sources...), true, true
	return r
}

// Brings reports that one of the sources is a file of this name.
func (r Request) Brings(name string) bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Format == Plain && s.Path() == name })
}

// Path is the name that the source has below the folder, empty for an archive of the folder itself.
func (s Source) Path() string {
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

// Public is a URL that can be shown, and whether what was left out is needed to fetch from it.
func Public(source string, withQuery bool) (shown string, stripped bool) {
	u, err := url.Parse(source)
	if err != nil {
		return "", true
	}
	stripped = u.User != nil
	u.User, u.Fragment = nil, ""
	if !withQuery {
		stripped = stripped || u.RawQuery != ""
		u.RawQuery = ""
	}
	return u.String(), stripped
}

// Address recognises a URL without keeping it.
func Address(url string) string {
	if url == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}
