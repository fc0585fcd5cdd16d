package model

import (
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// Request is the life of one ContainerRecreateRequest.
type Request struct {
	UID, Namespace, Name, PodUID string
	Created                      entry.Write
	Versions                     []entry.Write // with an object, in the order of their revisions
	Deleted                      *entry.Write  // the first deletion asked for
	Unsure                       []entry.Write // writes nobody knows the outcome of
}

func (r *Request) String() string { return r.Namespace + "/" + r.Name }

// Node is the one whose daemon carries the request out.
func (r *Request) Node() string { return r.Created.Request.Labels[v1beta1.LabelNodeName] }

// Spec is what admission stored.
func (r *Request) Spec() v1beta1.ContainerRecreateRequestSpec { return r.Created.Request.Spec }

// Terminal is the first version that has ended.
func (r *Request) Terminal() *entry.Write {
	for i := range r.Versions {
		if ended(r.Versions[i].Request.Status) {
			return &r.Versions[i]
		}
	}
	return nil
}

// EndWritten is when the write that ended the request was received. What shows the end may be a write that cannot have stored it,
// as it is none of the status: then one before it did that was to end it, and of which the API server has not said so.
func (r *Request) EndWritten() time.Time {
	terminal := r.Terminal()
	at := terminal.Received
	if terminal.Subresource == entry.StatusResource {
		return at
	}
	for _, w := range r.Unsure {
		if w.Ends && w.Received.Before(at) {
			at = w.Received
		}
	}
	return at
}

// EndedAt is when the request had ended or was deleted, and whether it was.
func (r *Request) EndedAt() (time.Time, bool) {
	var at time.Time
	if terminal := r.Terminal(); terminal != nil {
		at = terminal.Received
	}
	if r.Deleted != nil && (at.IsZero() || r.Deleted.Received.Before(at)) {
		at = r.Deleted.Received
	}
	return at, !at.IsZero()
}

func ended(status v1beta1.ContainerRecreateRequestStatus) bool {
	return status.Phase == v1beta1.ContainerRecreateRequestCompleted || status.CompletionTime != nil
}

// UnsureSince reports whether the request may have been written between the last version we know of that is older
// than that time, and that time.
func (r *Request) UnsureSince(at time.Time) bool {
	last := r.Created.Received
	for _, v := range r.Versions {
		if v.Received.Before(at) {
			last = v.Received
		}
	}
	return slices.ContainsFunc(r.Unsure, func(w entry.Write) bool { return !w.Done.Before(last) && w.Received.Before(at) })
}

// UnsureBefore is UnsureSince for a write to another object: a version of the request that was stored after it says nothing, even
// if it was received before.
func (r *Request) UnsureBefore(other *entry.Write) bool {
	last := r.Created.Received
	for _, v := range r.Versions {
		if entry.Revision(v.Request.ResourceVersion) < entry.Revision(other.Request.ResourceVersion) {
			last = v.Received
		}
	}
	return slices.ContainsFunc(r.Unsure, func(w entry.Write) bool { return !w.Done.Before(last) && w.Received.Before(other.Received) })
}

// StoredSince is the earliest time at which what the version shows may have been stored: by that write, or by one before it of which nothing
// is known.
func (r *Request) StoredSince(version entry.Write) time.Time {
	last, at := r.Created.Received, version.Received
	for _, v := range r.Versions {
		if entry.Revision(v.Request.ResourceVersion) < entry.Revision(version.Request.ResourceVersion) {
			last = v.Received
		}
	}
	for _, w := range r.Unsure {
		if !w.Done.Before(last) && w.Received.Before(at) {
			at = w.Received
		}
	}
	if at.Before(last) {
		return last
	}
	return at
}

// Recorded is the first version that names the instance as the one this request stops.
func (r *Request) Recorded(container, id string) *entry.Write {
	for i := range r.Versions {
		for _, state := range r.Versions[i].Request.Status.ContainerRecreateStates {
			if state.Name == container && entry.BareID(state.ContainerID) == id {
				return &r.Versions[i]
			}
		}
	}
	return nil
}

// Succeeded is the first version that calls the container recreated.
func (r *Request) Succeeded(container string) entry.Write {
	for _, v := range r.Versions {
		for _, state := range v.Request.Status.ContainerRecreateStates {
			if state.Name == container && state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
				return v
			}
		}
	}
	return *r.Terminal()
}

// Begun is the first version in which the request is being carried out.
func (r *Request) Begun() *entry.Write {
	for i := range r.Versions {
		if r.Versions[i].Request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
			return &r.Versions[i]
		}
	}
	return nil
}
