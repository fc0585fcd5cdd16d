package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/internal/foreign"
)

// maxSaid bounds the error about a malformed body, in bytes, because it may quote the body.
const maxSaid = 256

const saidOneValue = "JSON: more than one value"

// file is one source in a JSON request.
type file struct {
	URL       string           `json:"url"`
	Data      []byte           `json:"data"` // base64
	Name      string           `json:"name"`
	SHA256    string           `json:"sha256"`
	Signature []byte           `json:"signature"` // base64
	Format    hotupdate.Format `json:"format"`
	Mode      string           `json:"mode"` // octal, such as "0640"
}

// body is a JSON request: one file at the top level, or several in Files.
type body struct {
	Version string `json:"version"`
	file
	Files []file `json:"files"`
	// Keep leaves the other files in place; true by default.
	Keep   *bool `json:"keep"`
	DryRun bool  `json:"dryRun"`
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

func readRequest(r *http.Request) (hotupdate.Request, error) {
	if isJSON(r) {
		return readJSON(r)
	}
	if err := parseForm(r); err != nil {
		return hotupdate.Request{}, err
	}
	if err := checkForm(r.Form, updateFields); err != nil {
		return hotupdate.Request{}, err
	}
	signature, err := base64.StdEncoding.DecodeString(r.FormValue("signature"))
	if err != nil {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, "signature: want base64"}
	}
	mode, err := parseMode(r.FormValue("mode"))
	if err != nil {
		return hotupdate.Request{}, err
	}
	keep, err := parseBool("keep", r.FormValue("keep"), true)
	if err != nil {
		return hotupdate.Request{}, err
	}
	dryRun, err := parseBool("dryRun", r.FormValue("dryRun"), r.Form.Has("dryRun"))
	if err != nil {
		return hotupdate.Request{}, err
	}
	request := hotupdate.Request{
		Version: r.FormValue("version"), Keep: keep, DryRun: dryRun,
		Sources: []hotupdate.Source{{
			URL: r.FormValue("url"), Name: r.FormValue("name"), SHA256: r.FormValue("sha256"), Format: hotupdate.Format(r.FormValue("format")),
			Mode: mode, Signature: signature,
		}},
	}
	switch {
	case !referenceVersion.MatchString(request.Version):
		return request, &refusal{http.StatusBadRequest, saidVersion}
	case request.Sources[0].URL == "":
		return request, &refusal{http.StatusBadRequest, saidURL}
	}
	return request, nil
}

func readJSON(r *http.Request) (hotupdate.Request, error) {
	var text bytes.Buffer
	text.Grow(int(min(max(r.ContentLength, 0), maxBody)) + bytes.MinRead) // avoids copies while it is read
	_, err := text.ReadFrom(r.Body)
	if err == nil {
		err = foreign.CheckObject(text.Bytes(), nil) // "{}," is three bytes, but a file takes more than a hundred bytes of memory
	}
	if err != nil {
		return hotupdate.Request{}, unreadable("JSON", err)
	}
	var b body
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return hotupdate.Request{}, unreadable("JSON", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, saidOneValue}
	}
	query := r.URL.Query()
	if err := checkForm(query, []string{"dryRun"}); err != nil {
		return hotupdate.Request{}, err
	}
	dryRun, err := parseBool("dryRun", query.Get("dryRun"), query.Has("dryRun"))
	if err != nil {
		return hotupdate.Request{}, err
	}
	request := hotupdate.Request{Version: b.Version, Keep: b.Keep == nil || *b.Keep, DryRun: b.DryRun || dryRun}
	files := b.Files
	if b.URL != "" || b.Data != nil {
		files = append([]file{b.file}, files...)
	}
	for i, f := range files {
		switch {
		case f.URL == "" && f.Data == nil:
			return request, &refusal{http.StatusBadRequest, saidURL}
		case f.URL != "" && f.Data != nil:
			return request, &refusal{http.StatusBadRequest, fmt.Sprintf("file %d: want exactly one of url and data", i)}
		case strings.ContainsRune(f.Name, utf8.RuneError): // it stands for bytes that are not UTF-8
			return request, &refusal{http.StatusBadRequest, fmt.Sprintf("file %d: name: not UTF-8, or with the character U+FFFD", i)}
		}
		source, err := f.source()
		if err != nil {
			return request, err
		}
		request.Sources = append(request.Sources, source)
	}
	switch {
	case request.Version == "", strings.ContainsRune(request.Version, utf8.RuneError):
		return request, &refusal{http.StatusBadRequest, saidVersion}
	case len(files) == 0:
		return request, &refusal{http.StatusBadRequest, saidURL}
	}
	return request, nil
}

// unreadable returns the refusal of a malformed body.
func unreadable(kind string, err error) *refusal {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("%s: more than %d bytes", kind, tooLarge.Limit)}
	}
	return &refusal{http.StatusBadRequest, kind + ": " + foreign.Shorten(err.Error(), maxSaid)}
}

func (f file) source() (hotupdate.Source, error) {
	mode, err := parseMode(f.Mode)
	return hotupdate.Source{
		URL: f.URL, Data: f.Data, Name: f.Name, SHA256: f.SHA256, Signature: f.Signature, Format: f.Format, Mode: mode,
	}, err
}

// parseMode reads permission bits in octal; empty is 0, the default.
func parseMode(text string) (fs.FileMode, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 9)
	if err != nil {
		return 0, &refusal{http.StatusBadRequest, "mode: want permission bits in octal, such as 0640"}
	}
	return fs.FileMode(n), nil
}

// parseBool reads the parameter name. Other text than a boolean is refused: an update in place of a dry run, or with files
// removed, cannot be what was meant.
func parseBool(name, text string, empty bool) (bool, error) {
	if text == "" {
		return empty, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, &refusal{http.StatusBadRequest, fmt.Sprintf("%s %q: want true or false", name, foreign.Shorten(text, maxSaid))}
	}
	return b, nil
}

// parseForm reads the form in the URL and in the body.
func parseForm(r *http.Request) error {
	// ParseMultipartForm does not report that another kind of form is too large or malformed.
	if err := r.ParseForm(); err != nil {
		return unreadable("form", err)
	}
	err := r.ParseMultipartForm(maxForm) //nolint:gosec // the body has been bounded by the handler
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return unreadable("form", err)
	}
	if r.MultipartForm != nil && len(r.MultipartForm.File) > 0 {
		return &refusal{http.StatusBadRequest, "form: attached files are not read; send the content as data, in JSON"}
	}
	return nil
}

// updateFields are the fields of an update in a form.
var updateFields = []string{"version", "url", "name", "sha256", "signature", "format", "mode", "keep", "dryRun"}

// checkForm refuses fields that a form cannot have, as a misspelled dryRun would otherwise make the update, and fields with more than
// one value, of which all but one would be lost.
func checkForm(form url.Values, fields []string) error {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		quoted := strconv.Quote(foreign.Shorten(name, maxSaid))
		switch {
		case !slices.Contains(fields, name):
			return &refusal{http.StatusBadRequest, fmt.Sprintf("form: %s: unknown field, want %s", quoted, strings.Join(fields, ", "))}
		case len(form[name]) > 1:
			return &refusal{http.StatusBadRequest, fmt.Sprintf("form: %s: %d values, want one", quoted, len(form[name]))}
		}
	}
	return nil
}

// revisionName is what a request to /rollback names: the previous revision if both fields are empty.
type revisionName struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// readRollback refuses what it does not understand, which would otherwise return to the previous revision in place of the one
// that was meant.
func readRollback(r *http.Request) (revisionName, error) {
	if err := parseForm(r); err != nil {
		return revisionName{}, err
	}
	if err := checkForm(r.Form, []string{"id", "version"}); err != nil {
		return revisionName{}, err
	}
	wanted := revisionName{r.FormValue("id"), r.FormValue("version")}
	if !isJSON(r) {
		if len(r.PostForm) == 0 && r.ContentLength > 0 {
			return revisionName{}, &refusal{http.StatusBadRequest, "body: want a form or JSON"}
		}
		return wanted, nil
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil && !errors.Is(err, io.EOF) {
		return revisionName{}, unreadable("JSON", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return revisionName{}, &refusal{http.StatusBadRequest, saidOneValue}
	}
	return wanted, nil
}

// referenceVersion matches what the reference implementation accepts as a version.
var referenceVersion = regexp.MustCompile(`^v\d+(?:\.\d+)*$`)
