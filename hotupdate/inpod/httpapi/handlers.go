// Package httpapi is the HTTP interface of the KEP for hot updates: requests, their answers, roll back and the list of
// revisions.
//
// It contains: reading requests and writing answers. Carrying out updates must stay out.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/refit-project/refit/hotupdate"
)

const (
	// maxBody bounds a request in JSON, including its content.
	maxBody = 8 << 20
	// smallBody is the size up to which requests are read concurrently.
	smallBody = 64 << 10
	// maxForm bounds a form and all other bodies without content.
	maxForm = 1 << 20

	// Messages of the reference implementation, on which scripts rely.
	saidPost    = "only POST requests are allowed"
	saidVersion = "please provide a valid version"
	saidURL     = "please provide a valid URL"
	saidDone    = "File downloaded and update successfully"

	saidDry = "the candidate is good, nothing was changed"
)

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

// Updates carries out requests. Its errors are those that the package hotupdate returns, ErrRestoring, ErrStopping and
// ErrUnavailable.
type Updates interface {
	Apply(ctx context.Context, request hotupdate.Request) (hotupdate.Result, error)
	Rollback(ctx context.Context, id string) (hotupdate.Result, error)
	// Revisions returns the accepted revisions, the current one first.
	Revisions() ([]hotupdate.Revision, error)
}

type handlers struct {
	updates Updates
	// large is held while an update with a large body is read and applied, because it may take much memory.
	large sync.Mutex
}

// Routes returns the handlers of the endpoints, by pattern of net/http.ServeMux.
func Routes(updates Updates) map[string]http.Handler {
	h := &handlers{updates: updates}
	return map[string]http.Handler{
		"/hot-update":    http.HandlerFunc(h.serveUpdate),
		"/rollback":      http.HandlerFunc(h.serveRollback),
		"GET /revisions": http.HandlerFunc(h.serveRevisions),
	}
}

// refusal is the reason why a request is rejected.
type refusal struct {
	code int
	said string
}

func (r *refusal) Error() string { return r.said }

// serveUpdate handles POST /hot-update with a form or JSON.
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
	most := int64(maxForm)
	if isJSON(r) {
		most = maxBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
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

// serveRollback handles POST /rollback, with the ID or version of a revision, or with neither for the previous one.
func (h *handlers) serveRollback(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerText(w, http.StatusMethodNotAllowed, saidPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	wanted, err := readRollback(r)
	if err != nil {
		h.answer(w, r, "", hotupdate.Result{}, err)
		return
	}
	id := wanted.ID
	if id == "" && wanted.Version != "" {
		if id, err = h.revisionOf(wanted.Version); err != nil {
			h.answer(w, r, wanted.Version, hotupdate.Result{}, err)
			return
		}
	}
	res, err := h.updates.Rollback(r.Context(), id)
	h.answer(w, r, res.Revision.Version, res, err)
}

// revisionOf returns the ID of the newest accepted revision with a version.
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

// serveRevisions handles GET /revisions, the current one first.
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
