// Package httpapi is the HTTP interface of the KEP for hot updates: requests, their answers, roll back and the list of
// revisions.
//
// It contains: reading requests and writing answers. Carrying out updates must stay out.
package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refit-project/refit/hotupdate"
)

const (
	// maxBody bounds a request, content that comes with it included.
	maxBody = 8 << 20
	// smallBody is up to which size requests are read side by side.
	smallBody = 64 << 10
	// maxForm is how much of a form is kept in memory.
	maxForm = 1 << 20

	// The words of the reference implementation, on which scripts rely.
	saidPost    = "only POST requests are allowed"
	saidVersion = "please provide a valid version"
	saidURL     = "please provide a valid URL"
	saidDone    = "File downloaded and update successfully"

	saidDry = "the candidate is good, nothing was changed"
)

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

var (
	// ErrRestoring means that updates are not accepted yet.
	ErrRestoring = errors.New("the accepted revision is being restored")
	// ErrUnrestored means that the update would keep files that the workload has and this pod does not.
	ErrUnrestored = errors.New("the workload has files that this pod could not restore")
	// ErrStopping means that updates are not accepted any more.
	ErrStopping = errors.New("the sidecar is stopping")
	// ErrUnavailable means that the API server is needed to find the process to signal, and does not respond.
	ErrUnavailable = errors.New("the process to signal cannot be found while the API server does not respond")
)

// Updates carries out what is requested. The errors are those of the room hotupdate, ErrRestoring, ErrStopping and ErrUnavailable.
type Updates interface {
	Apply(ctx context.Context, request hotupdate.Request) (hotupdate.Result, error)
	Rollback(ctx context.Context, id string) (hotupdate.Result, error)
	// Revisions are the accepted ones, the current one first.
	Revisions() ([]hotupdate.Revision, error)
}

type handlers struct {
	updates Updates
	// large is held while an update with a large body is read and carried out: it may take much of the memory.
	large sync.Mutex
}

// Routes are the endpoints, as patterns of net/http.ServeMux.
func Routes(updates Updates) map[string]http.Handler {
	h := &handlers{updates: updates}
	return map[string]http.Handler{
		"/hot-update":    http.HandlerFunc(h.serveUpdate),
		"/rollback":      http.HandlerFunc(h.serveRollback),
		"GET /revisions": http.HandlerFunc(h.serveRevisions),
	}
}

// refusal is a request that is not tried.
type refusal struct {
	code int
	said string
}

func (r *refusal) Error() string { return r.said }

// serveUpdate is POST /hot-update with a form or JSON.
func (h *handlers) serveUpdate(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerText(w, http.StatusMethodNotAllowed, saidPost)
		return
	}
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		if !h.large.TryLock() {
			h.answer(w, r, "", hotupdate.Result{}, hotupdate.ErrBusy)
			return
		}
		defer h.large.Unlock()
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	wanted, err := readRequest(r)
	if err != nil {
		h.answer(w, r, wanted.Version, hotupdate.Result{}, err)
		return
	}
	res, err := h.updates.Apply(r.Context(), wanted)
	if err == nil && wanted.DryRun && !wantsJSON(r) {
		answerText(w, http.StatusOK, saidDry)
		return
	}
	h.answer(w, r, wanted.Version, res, err)
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

func readRequest(r *http.Request) (hotupdate.Request, error) {
	if isJSON(r) {
		return readJSON(r)
	}
	err := r.ParseMultipartForm(maxForm) //nolint:gosec // the body has been bounded by the handler
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, "form: " + err.Error()}
	}
	signature, err := base64.StdEncoding.DecodeString(r.FormValue("signature"))
	if err != nil {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, "signature: want base64"}
	}
	mode, err := parseMode(r.FormValue("mode"))
	if err != nil {
		return hotupdate.Request{}, err
	}
	request := hotupdate.Request{
		Version: r.FormValue("version"), Keep: r.FormValue("keep") == "" || parseBool(r.FormValue("keep")),
		DryRun: parseBool(r.FormValue("dryRun")) || r.URL.Query().Has("dryRun") && r.FormValue("dryRun") == "",
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
	var b body
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, "JSON: " + err.Error()}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return hotupdate.Request{}, &refusal{http.StatusBadRequest, "JSON: more than one value"}
	}
	request := hotupdate.Request{Version: b.Version, Keep: b.Keep == nil || *b.Keep, DryRun: b.DryRun || r.URL.Query().Has("dryRun")}
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
		case strings.ContainsRune(f.Name, utf8.RuneError): // which stands for what was not UTF-8
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

func parseBool(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}

// referenceVersion is what the reference implementation takes for a version.
var referenceVersion = regexp.MustCompile(`^v\d+(?:\.\d+)*$`)

// serveRollback is POST /rollback, with the id or version of a revision, or with neither for the one before.
func (h *handlers) serveRollback(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerText(w, http.StatusMethodNotAllowed, saidPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	wanted := struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	}{r.FormValue("id"), r.FormValue("version")}
	if isJSON(r) {
		if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil && !errors.Is(err, io.EOF) {
			h.answer(w, r, "", hotupdate.Result{}, &refusal{http.StatusBadRequest, "JSON: " + err.Error()})
			return
		}
	}
	id := wanted.ID
	if id == "" && wanted.Version != "" {
		var err error
		if id, err = h.revisionOf(wanted.Version); err != nil {
			h.answer(w, r, wanted.Version, hotupdate.Result{}, err)
			return
		}
	}
	res, err := h.updates.Rollback(r.Context(), id)
	h.answer(w, r, res.Revision.Version, res, err)
}

// revisionOf is the newest accepted revision of a version.
func (h *handlers) revisionOf(version string) (string, error) {
	all, err := h.updates.Revisions()
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if r.Version == version {
			return r.ID, nil
		}
	}
	return "", fmt.Errorf("version %q: %w", version, hotupdate.ErrUnknownRevision)
}

// serveRevisions is GET /revisions, the current one first.
func (h *handlers) serveRevisions(w http.ResponseWriter, r *http.Request) {
	all, err := h.updates.Revisions()
	if err != nil {
		h.answer(w, r, "", hotupdate.Result{}, err)
		return
	}
	shown := make([]Description, 0, len(all))
	for _, one := range all {
		shown = append(shown, Describe(one))
	}
	answerJSON(w, http.StatusOK, shown)
}
