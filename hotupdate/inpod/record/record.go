// Package record stores in a ConfigMap what the pods of one workload have accepted, so that a new pod can start with it.
//
// It contains: the record of a workload, how the workload is identified, and reading and writing the record. Fetching and
// applying files must stay out.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/internal/foreign"
)

const (
	// maxRevisions bounds the history of one workload: all workloads of a namespace share an object of 1 MiB.
	maxRevisions = 5
	// maxRecord bounds the record of one workload, in bytes.
	maxRecord = 16 << 10
	// maxLost bounds the names of Revision.Lost together, in bytes.
	maxLost = 2 << 10
)

// record has what the pods of one workload have accepted: the revision accepted last, and some before it.
type record struct {
	// UID of the workload: another workload with the same name has other files. Empty if it is not known.
	UID       string     `json:"uid,omitempty"`
	Current   string     `json:"current"` // digest of the revision accepted last; empty after a roll back to the initial files
	Revisions []Revision `json:"revisions"`
}

// Revision describes how to fetch a revision again.
type Revision struct {
	Version  string    `json:"version"`
	Digest   string    `json:"digest"`
	Accepted time.Time `json:"accepted"`
	Sources  []origin  `json:"sources"`
	// Set is the digest of the files of the sources; empty in records of earlier versions. It differs from Digest if
	// triggers have added files.
	Set string `json:"set,omitempty"`
	// Partial means that some content cannot be fetched again, for this Reason.
	Partial bool   `json:"partial,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Lost are the names of files that cannot be fetched again. In a partial revision without names it is not known which
	// they are.
	Lost []string `json:"lost,omitempty"`
	// Left means that the workload has rolled back from this revision to an earlier one.
	Left bool `json:"left,omitempty"`
}

type origin struct {
	URL    string           `json:"url"`
	Name   string           `json:"name"`
	SHA256 string           `json:"sha256"`
	Format hotupdate.Format `json:"format,omitempty"`
	Mode   fs.FileMode      `json:"mode,omitempty"`
	// Signature is kept for the restore: a user who may write the record cannot sign.
	Signature []byte `json:"signature,omitempty"`
}

// ErrDamaged means that the record was not written by a sidecar. The next revision replaces it.
var ErrDamaged = errors.New("damaged record")

// parseRecord reads what formatRecord wrote.
func parseRecord(text string) (record, error) {
	var r record
	if len(text) > maxRecord {
		return r, fmt.Errorf("%w of %d bytes: more than %d", ErrDamaged, len(text), maxRecord)
	}
	if err := foreign.JSON(text, &r); err != nil {
		return record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r, nil
}

// errTooLong means that a revision has too many sources for the record.
var errTooLong = fmt.Errorf("%w: too many sources for the record", hotupdate.ErrTooLarge)

// formatRecord drops old revisions until the rest fits.
func formatRecord(r record) (string, error) {
	for {
		b, err := json.Marshal(r)
		if err != nil {
			return "", err
		}
		if len(b) <= maxRecord {
			return string(b), nil
		}
		if len(r.Revisions) <= 1 {
			return "", errTooLong
		}
		r.Revisions = r.Revisions[:len(r.Revisions)-1]
	}
}

// current returns the revision accepted last.
func (r record) current() (Revision, bool) {
	i := slices.IndexFunc(r.Revisions, func(m Revision) bool { return m.Digest == r.Current && r.Current != "" })
	if i < 0 {
		return Revision{}, false
	}
	return r.Revisions[i], true
}

// wanted returns the revision accepted last and, after it, the ones before it, the newest first: each is the best
// replacement that can be fetched if all earlier entries cannot.
func (r record) wanted() []Revision {
	last, ok := r.current()
	if !ok {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(r.Revisions), func(m Revision) bool {
		return m.Digest == last.Digest || m.Left || m.Partial
	})
	return append([]Revision{last}, rest...)
}

// accept makes a revision the current one and puts it first. A revision without a digest stands for the initial files: all
// others are left.
func (r record) accept(m Revision) record {
	r.Current = m.Digest
	rest := slices.Clone(r.Revisions)
	if m.Digest == "" {
		for i := range rest {
			rest[i].Left = true
		}
		r.Revisions = rest
		return r
	}
	if i := slices.IndexFunc(rest, func(o Revision) bool { return o.Digest == m.Digest }); i >= 0 {
		for later := range i { // none after a revision that was itself left: this is a step forward to it
			rest[later].Left = rest[later].Left || !rest[i].Left
		}
		rest = slices.Delete(rest, i, i+1)
	}
	r.Revisions = append([]Revision{m}, rest...)
	if len(r.Revisions) > maxRevisions {
		r.Revisions = r.Revisions[:maxRevisions]
	}
	return r
}

// Reasons of Partial.
const (
	reasonInline     = "content that came with the request"
	reasonPrivateURL = "the URL has a user, a password or a query, which is not stored"
	reasonUnknown    = "files from requests that an earlier version of the sidecar has carried out"
)

// NewRevision describes how to fetch a revision that was accepted, or rolled back to, at a time. It has no digest if no
// request has brought any of the files: a new pod has the initial files and the files of triggers without the record.
// Digests are of the accepted content: nothing else will be restored.
func NewRevision(accepted hotupdate.Revision, at time.Time) Revision {
	m := Revision{Version: accepted.Version, Accepted: at.UTC().Truncate(time.Second)}
	if accepted.Unrequested() {
		return m
	}
	m.Digest, m.Set = accepted.Digest, accepted.Requested.Digest
	if m.Set == "" {
		m.Partial, m.Reason = true, reasonUnknown
	}
	known := m.Set != ""
	for _, s := range accepted.Requested.Sources {
		switch {
		case s.URL == "" || s.Stripped:
			m.Partial, m.Reason = true, reasonInline
			if s.Stripped {
				m.Reason = reasonPrivateURL
			}
			m.Lost = append(m.Lost, s.Name)
			known = known && s.Format == hotupdate.Plain
		default:
			m.Sources = append(m.Sources, origin{URL: s.URL, Name: s.Name, SHA256: s.SHA256, Format: s.Format, Mode: s.Mode, Signature: s.Signature})
		}
	}
	if !known || len(strings.Join(m.Lost, "/")) > maxLost {
		m.Lost = nil
	}
	return m
}

// ErrLost means that files of a revision cannot be fetched again, and that the request that keeps them does not contain
// them.
var ErrLost = errors.New("files of the workload that cannot be had again")

// Merge returns a request for the revision together with the files of another request, as if the revision were in force
// already.
func (m Revision) Merge(request hotupdate.Request) (hotupdate.Request, error) {
	lost := slices.DeleteFunc(slices.Clone(m.Lost), request.Brings)
	switch {
	case len(lost) > 0:
		return request, fmt.Errorf("%w: of %s: %s (%s)", ErrLost, m.Version, strings.Join(lost, ", "), m.Reason)
	case m.Partial && len(m.Lost) == 0:
		return request, fmt.Errorf("%w: of %s: %s", ErrLost, m.Version, m.Reason)
	}
	return request.OnTopOf(m.Request().Sources), nil
}

// Request returns a request for the revision.
func (m Revision) Request() hotupdate.Request {
	request := hotupdate.Request{Version: m.Version, Digest: m.Set, Layered: true, KeepUnrequested: true}
	for _, o := range m.Sources {
		request.Sources = append(request.Sources, hotupdate.Source{
			URL: o.URL, Name: o.Name, SHA256: o.SHA256, Format: o.Format, Mode: o.Mode, Signature: o.Signature,
		})
	}
	return request
}
