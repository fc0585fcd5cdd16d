// Package record keeps what the pods of one workload have accepted in a ConfigMap, so that a new pod can begin with it.
//
// It contains: the record of a workload, whose it is, and reading and writing it. Fetching and applying files must
// stay out.
package record

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate"
)

const (
	// maxRevisions bounds the history of one workload: all workloads of a namespace share an object of 1 MiB.
	maxRevisions = 5
	// maxRecord bounds one workload's part, in bytes.
	maxRecord = 16 << 10
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

// parseRecord reads what formatRecord wrote.
func parseRecord(text string) (record, error) {
	var r record
	if len(text) > maxRecord {
		return r, fmt.Errorf("record of %d bytes: more than %d", len(text), maxRecord)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return record{}, fmt.Errorf("decode record: %w", err)
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
func (r record) current() (Revision, bool) { return r.find(r.Current, "") }

// find looks for a revision by its digest, or else by that of the files that its sources bring: the files of triggers may have
// changed since.
func (r record) find(digest, set string) (Revision, bool) {
	for _, is := range []func(Revision) bool{
		func(m Revision) bool { return m.Digest == digest && digest != "" },
		func(m Revision) bool { return m.Set == set && set != "" },
	} {
		if i := slices.IndexFunc(r.Revisions, is); i >= 0 {
			return r.Revisions[i], true
		}
	}
	return Revision{}, false
}

// accept makes a revision the current one, the newest first. With the zero Revision there is none, as before the first.
func (r record) accept(m Revision) record {
	r.Current = m.Digest
	if m.Digest == "" {
		return r
	}
	rest := slices.DeleteFunc(slices.Clone(r.Revisions), func(o Revision) bool { return o.Digest == m.Digest })
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
)

// newRevision describes a revision by the request that led to it and, where the request kept other files, by those
// that led to the one before. Digests are those of what was accepted: nothing else will be restored. delivered are
// files of triggers, which bring them to new pods by themselves.
func (o Options) newRevision(request hotupdate.Request, accepted hotupdate.Revision, before Revision, now time.Time) Revision {
	m := Revision{
		Version: accepted.Version, Digest: accepted.Digest, Accepted: now.UTC().Truncate(time.Second),
		Set: accepted.DigestWithout(o.delivered()),
	}
	for i, s := range request.Sources {
		if s.URL == "" {
			m.Partial, m.Reason = true, reasonInline
			continue
		}
		if !o.storable(s.URL) {
			m.Partial, m.Reason = true, reasonPrivateURL
			continue
		}
		from := origin{URL: s.URL, Name: s.Name, SHA256: s.SHA256, Format: s.Format, Mode: s.Mode, Signature: s.Signature}
		if i < len(accepted.Sources) {
			from.Name, from.SHA256 = accepted.Sources[i].Name, accepted.Sources[i].SHA256
		}
		m.Sources = append(m.Sources, from)
	}
	if !request.Keep {
		return m
	}
	if before.Partial {
		m.Partial, m.Reason = true, before.Reason
	}
	for _, from := range slices.Backward(before.Sources) {
		same := func(other origin) bool { return other.Name == from.Name && other.Format == from.Format }
		gone := from.Format == hotupdate.Plain && !accepted.Has(from.Name)
		if !gone && !slices.ContainsFunc(m.Sources, same) {
			m.Sources = append([]origin{from}, m.Sources...)
		}
	}
	return m
}

// storable reports whether a URL may be written into a ConfigMap: a user who may read ConfigMaps must not read credentials.
func (o Options) storable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User == nil && (u.RawQuery == "" || o.StoreQueries)
}

// Request asks for the revision again.
func (m Revision) Request() hotupdate.Request {
	request := hotupdate.Request{Version: m.Version, Digest: m.Set}
	for _, o := range m.Sources {
		request.Sources = append(request.Sources, hotupdate.Source{
			URL: o.URL, Name: o.Name, SHA256: o.SHA256, Format: o.Format, Mode: o.Mode, Signature: o.Signature,
		})
	}
	return request
}
