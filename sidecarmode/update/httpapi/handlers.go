package update

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/refit-project/refit/hotupdate"
)

const (
	// maxBody bounds a request, content that comes with it included.
	maxBody = 8 << 20
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

// refusal is a request that is not tried.
type refusal struct {
	code int
	said string
}

func (r *refusal) Error() string { return r.said }

// serveUpdate is POST /hot-update with a form or JSON.
func (p *Plugin) serveUpdate(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerText(w, http.StatusMethodNotAllowed, saidPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	asked, err := readRequest(r)
	if err != nil {
		p.answer(w, r, asked.Version, hotupdate.Result{}, err)
		return
	}
	res, err := p.apply(r.Context(), false, asked)
	if err == nil && asked.DryRun && !wantsJSON(r) {
		answerText(w, http.StatusOK, saidDry)
		return
	}
	p.answer(w, r, asked.Version, res, err)
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
	request := hotupdate.Request{
		Version: r.FormValue("version"), Keep: true,
		DryRun: parseBool(r.FormValue("dryRun")) || r.URL.Query().Has("dryRun") && r.FormValue("dryRun") == "",
		Sources: []hotupdate.Source{{
			URL: r.FormValue("url"), Name: r.FormValue("name"), SHA256: r.FormValue("sha256"), Format: hotupdate.Format(r.FormValue("format")),
			Signature: signature,
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
	for _, f := range files {
		if f.URL == "" && f.Data == nil {
			return request, &refusal{http.StatusBadRequest, saidURL}
		}
		request.Sources = append(request.Sources, f.source())
	}
	switch {
	case request.Version == "":
		return request, &refusal{http.StatusBadRequest, saidVersion}
	case len(files) == 0:
		return request, &refusal{http.StatusBadRequest, saidURL}
	}
	return request, nil
}

func (f file) source() hotupdate.Source {
	return hotupdate.Source{URL: f.URL, Data: f.Data, Name: f.Name, SHA256: f.SHA256, Signature: f.Signature, Format: f.Format}
}

// serveRollback is POST /rollback, with the id or version of a revision, or with neither for the one before.
func (p *Plugin) serveRollback(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerText(w, http.StatusMethodNotAllowed, saidPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	asked := struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	}{r.FormValue("id"), r.FormValue("version")}
	if isJSON(r) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
			p.answer(w, r, "", hotupdate.Result{}, &refusal{http.StatusBadRequest, "JSON: " + err.Error()})
			return
		}
	}
	id := asked.ID
	if id == "" && asked.Version != "" {
		var err error
		if id, err = p.revisionOf(asked.Version); err != nil {
			p.answer(w, r, asked.Version, hotupdate.Result{}, err)
			return
		}
	}
	res, err := p.rollback(r.Context(), id)
	p.answer(w, r, res.Revision.Version, res, err)
}

// revisionOf is the newest accepted revision of a version.
func (p *Plugin) revisionOf(version string) (string, error) {
	u := p.current()
	if u == nil {
		return "", errRestoring
	}
	all, err := u.Revisions()
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

func (p *Plugin) current() *hotupdate.Updater {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// serveRevisions is GET /revisions, the current one first.
func (p *Plugin) serveRevisions(w http.ResponseWriter, r *http.Request) {
	u := p.current()
	if u == nil {
		p.answer(w, r, "", hotupdate.Result{}, errRestoring)
		return
	}
	all, err := u.Revisions()
	if err != nil {
		p.answer(w, r, "", hotupdate.Result{}, err)
		return
	}
	shown := make([]described, 0, len(all))
	for _, one := range all {
		shown = append(shown, describe(one))
	}
	answerJSON(w, http.StatusOK, shown)
}
