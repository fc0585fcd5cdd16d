package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate"
)

// Description is a revision as the API shows it.
type Description struct {
	ID      string             `json:"id"`
	Version string             `json:"version"`
	Created time.Time          `json:"created"`
	Digest  string             `json:"digest"`
	Size    int64              `json:"size"`
	Files   int                `json:"files"`
	Sources []hotupdate.Origin `json:"sources,omitempty"`
}

// Describe returns the description of a revision.
func Describe(r hotupdate.Revision) Description {
	return Description{r.ID, r.Version, r.Created, r.Digest, r.Size(), len(r.Files), r.Sources}
}

func wantsJSON(r *http.Request) bool {
	return isJSON(r) || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// answered is the response in JSON.
type answered struct {
	Version    string       `json:"version"`
	Changed    bool         `json:"changed"`
	Revision   *Description `json:"revision,omitempty"`
	Error      string       `json:"error,omitempty"`
	Phase      string       `json:"phase,omitempty"`
	RolledBack bool         `json:"rolledBack,omitempty"`
	// ReloadSkipped is why the program was not reloaded.
	ReloadSkipped string `json:"untold,omitempty"`
	// Mended are files that differed from what was accepted and have been restored.
	Mended []string `json:"mended,omitempty"`
}

// answer writes the outcome: as JSON to clients that send or accept JSON, else as text. A failure never has status 200.
func (h *handlers) answer(w http.ResponseWriter, r *http.Request, version string, res hotupdate.Result, err error) {
	code, said := http.StatusOK, saidDone
	if res.ReloadSkipped != "" {
		said += "; the program was not reloaded: " + res.ReloadSkipped
	}
	if err != nil {
		code, said = explain(err)
		if errors.Is(err, hotupdate.ErrBusy) || errors.Is(err, ErrRestoring) || errors.Is(err, ErrUnavailable) {
			w.Header().Set("Retry-After", "5")
		}
	}
	if !wantsJSON(r) {
		answerText(w, code, said)
		return
	}
	a := answered{Version: version, Changed: res.Changed, ReloadSkipped: res.ReloadSkipped, Mended: res.Mended}
	if err == nil {
		revision := Describe(res.Revision)
		a.Revision = &revision
	} else {
		a.Error = said
		var failure *hotupdate.Failure
		if errors.As(err, &failure) {
			a.Phase, a.RolledBack = string(failure.Phase), failure.RolledBack
		}
	}
	answerJSON(w, code, a)
}

// explain returns the status code and the text of an error. Errors of the package hotupdate contain no credentials.
func explain(err error) (int, string) {
	var refused *refusal
	var failure *hotupdate.Failure
	switch {
	case errors.As(err, &refused):
		return refused.code, refused.said
	case errors.Is(err, hotupdate.ErrInvalid):
		return http.StatusBadRequest, err.Error()
	case errors.Is(err, hotupdate.ErrUnknownRevision):
		return http.StatusNotFound, err.Error()
	case errors.Is(err, hotupdate.ErrBusy), errors.Is(err, ErrUnrestored):
		return http.StatusConflict, err.Error()
	case errors.Is(err, ErrRestoring), errors.Is(err, ErrStopping), errors.Is(err, ErrUnavailable):
		return http.StatusServiceUnavailable, err.Error()
	case errors.As(err, &failure) && failure.Phase == hotupdate.Fetching:
		return http.StatusInternalServerError, "failed to download file: " + failure.Err.Error()
	}
	return http.StatusInternalServerError, "update failed: " + err.Error()
}

func answerText(w http.ResponseWriter, code int, said string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, said+"\n") //nolint:gosec // plain text, by its header; if this fails, the client has gone
}

func answerJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // if this fails, the client has gone
}
