// Package record keeps what the pods of one workload have accepted in a ConfigMap, so that a new pod can begin with it.
//
// It contains: the record of a workload, whose it is, and reading and writing it. Fetching and applying files must
// stay out.
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
)

const (
	// maxRevisions bounds the history of one workload: all workloads of a namespace share an object of 1 MiB.
	maxRevisions = 5
	// maxRecord bounds one workload's part, in bytes.
	maxRecord = 16 << 10
	// maxLost bounds the names of Revision.Lost together, in bytes.
	maxLost = 2 << 10
)

// record is what the pods of one workload have accepted: the revision accepted last, and some before it.
type record struct {
	// UID of the workload; another one of its name has other files. Empty where it cannot be known.
	UID       string     `json:"uid,omitempty"`
	Current   string     `json:"current"` // digest of the revision accepted last; empty after going back to before the first
	Revisions []Revision `json:"revisions"`
}

// Revision is how to get a revision again.
type Revision struct {
	Version  string    `json:"version"`
	Digest   string    `json:"digest"`
	Accepted time.Time `json:"accepted"`
	Sources  []origin  `json:"sources"`
	// Set is the digest of the files that the sources bring; empty in records of earlier versions. It differs from
	// Digest where triggers have brought files, too.
	Set string `json:"set,omitempty"`
	// Partial says that some content cannot be had again, and Reason why.
	Partial bool   `json:"partial,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Lost are the names of files that cannot be had again; empty in a partial revision: it is not known which.
	Lost []string `json:"lost,omitempty"`
	// Left says that the workload has gone back from it to an earlier one.
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

// ErrDamaged means that the record is not one that a sidecar has written. It is replaced by the next revision.
var ErrDamaged = errors.New("damaged record")

// parseRecord reads what formatRecord wrote.
func parseRecord(text string) (record, error) {
	var r record
	if len(text) > maxRecord {
		return r, fmt.Errorf("%w of %d bytes: more than %d", ErrDamaged, len(text), maxRecord)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
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

// current is the revision accepted last.
func (r record) current() (Revision, bool) {
	i := slices.IndexFunc(r.Revisions, func(m Revision) bool { return m.Digest == r.Current && r.Current != "" })
	if i < 0 {
		return Revision{}, false
	}
	return r.Revisions[i], true
}

// wanted are the revision accepted last and, after it, those that are as near to it as can be had without it: the ones before
// it, the newest first.
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

// accept makes a revision the current one, the newest first. With the zero Revision there is none, as before the first.
func (r record) accept(m Revision) record {
	r.Current = m.Digest
	if m.Digest == "" {
		return r
	}
	rest := slices.Clone(r.Revisions)
	if i := slices.IndexFunc(rest, func(o Revision) bool { return o.Digest == m.Digest }); i >= 0 {
		for later := range i { // none after one that was left itself: that one is gone forward to
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

// NewRevision says how to get a revision that was accepted, or gone back to, at a time. It has no digest if no request has
// brought any of the files, since those that were there before are in a new pod without the record, and so are those of
// triggers. Digests are those of what was accepted: nothing else will be restored.
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

// ErrLost means that files of a revision cannot be had again, and that a request which is to keep them does not bring them.
var ErrLost = errors.New("files of the workload that cannot be had again")

// Beside asks for the revision with what another request brings, as if it were in force already.
func (m Revision) Beside(request hotupdate.Request) (hotupdate.Request, error) {
	lost := slices.DeleteFunc(slices.Clone(m.Lost), request.Brings)
	switch {
	case len(lost) > 0:
		return request, fmt.Errorf("%w: of %s: %s (%s)", ErrLost, m.Version, strings.Join(lost, ", "), m.Reason)
	case m.Partial && len(m.Lost) == 0:
		return request, fmt.Errorf("%w: of %s: %s", ErrLost, m.Version, m.Reason)
	}
	return request.Over(m.Request().Sources), nil
}

// Request asks for the revision again.
func (m Revision) Request() hotupdate.Request {
	request := hotupdate.Request{Version: m.Version, Digest: m.Set, Layered: true, Afresh: true}
	for _, o := range m.Sources {
		request.Sources = append(request.Sources, hotupdate.Source{
			URL: o.URL, Name: o.Name, SHA256: o.SHA256, Format: o.Format, Mode: o.Mode, Signature: o.Signature,
		})
	}
	return request
}
