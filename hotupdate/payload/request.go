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

// Request says which files are to be in force.
type Request struct {
	// Version is the caller's name for the revision. It is shown wherever the revision is.
	Version string
	// Sources are where the files come from. Two sources may not have a file of the same name, unless the request is
	// Layered: then files of a later source replace files of an earlier one.
	Sources []Source
	Layered bool
	// Keep keeps files of the current revision that no source has.
	Keep bool
	// KeepUnrequested, with Keep, keeps only the files of the current revision that no request has brought, such as files of
	// triggers.
	KeepUnrequested bool
	// Provisional means that the revision is a replacement for the wanted one, see hotupdate.Updater.Provisional.
	Provisional bool
	// DryRun ends after the pre-check.
	DryRun bool
	// Digest is the expected manifest.Requested.Digest; not compared when empty.
	Digest string
	// Trigger is the name of a source that sends a request for every change of its content, and TriggerDigest identifies
	// the content. Both are stored when the request has been accepted, see hotupdate.Updater.Delivered. Files of the
	// trigger's previous content that are not in the new one are removed.
	Trigger, TriggerDigest string
	// NoReload puts the files in place without reloading the program, which has not been started yet. With ReloadLater, Reload
	// has to follow; until it has succeeded ReloadPending returns true, also for the next Updater of the folder.
	NoReload, ReloadLater bool
	// DistinctVersion refuses files that differ from the ones in force under the same version: a verification that compares
	// versions would succeed although the program has not loaded the files.
	DistinctVersion bool
	// Record makes Unrecorded return the time of acceptance until Recorded is called, also for the next Updater of the
	// folder.
	Record bool
	// Trusted sources need no signature, because their place is proof of their origin.
	Trusted bool
}

// Source is one file or one archive of files, from a URL or from memory.
type Source struct {
	// URL is http or https. When it is empty, Data is the content.
	URL  string
	Data []byte
	// Name is the file's path below the folder, with slashes. For an archive it is the folder of its files, which may be
	// empty. The default name of a plain file is the last element of the URL's path.
	Name string
	// SHA256 of the bytes as fetched, in hexadecimal; not compared when empty.
	SHA256 string
	Format Format
	// Mode of a plain file: permission bits, 0644 when zero. What an archive holds is 0644, or 0755 if executable.
	Mode fs.FileMode
	// Signature of the bytes as fetched; ignored unless Config has Keys.
	Signature []byte
}

const maxVersion = 256

// Validate returns all errors at once; they are ErrInvalid.
func (r Request) Validate() error {
	var errs []error
	if r.Version == "" || len(r.Version) > maxVersion || !utf8.ValidString(r.Version) || strings.ContainsFunc(r.Version, unicode.IsControl) {
		errs = append(errs, fmt.Errorf("version: want 1 to %d bytes of UTF-8 without control characters", maxVersion))
	}
	if len(r.Sources) == 0 && r.Trigger == "" {
		errs = append(errs, errors.New("no source"))
	}
	seen := map[string]bool{}
	for i, s := range r.Sources {
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("source %d: %w", i, err))
			continue
		}
		if name := s.Path(); s.Format == Plain && seen[name] {
			errs = append(errs, fmt.Errorf("source %d: %s is given twice", i, name))
		} else {
			seen[name] = true
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(errs...))
	}
	return nil
}

func (s Source) validate() error {
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || !utf8.ValidString(s.URL) {
			return errors.New("URL: cannot be parsed") // the error would contain the URL, which may contain a password
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

// OnTopOf returns the request with the sources in below added under its own: it has their files too, except files that it has
// itself. Of the revision in force only files that no request has brought stay.
func (r Request) OnTopOf(below []Source) Request {
	own := map[string]bool{}
	for _, s := range r.Sources {
		own[s.Path()] = s.Format == Plain
	}
	kept := slices.DeleteFunc(slices.Clone(below), func(s Source) bool { return s.Format == Plain && own[s.Path()] })
	r.Sources, r.Layered, r.KeepUnrequested = append(kept, r.Sources...), true, true
	return r
}

// Brings reports whether one of the sources is a file with this name.
func (r Request) Brings(name string) bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Format == Plain && s.Path() == name })
}

// Path returns the name of the source below the folder. It is empty for an archive of the folder itself.
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

// Public returns a URL that can be shown, and whether a removed part is needed to fetch from it.
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

// Address returns a digest that recognizes a URL without storing it.
func Address(url string) string {
	if url == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}
