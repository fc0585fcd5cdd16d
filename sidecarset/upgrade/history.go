package upgrade

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

// History is what is known about the versions of a SidecarSet.
type History struct {
	byName map[string]past
	byHash map[string][]past // by the hash of the spec with its defaults, and by the hash of the spec as written
	// bare maps the hashes that pods can carry to hashes without images.
	bare map[string]string
}

type past struct {
	hash    string // with defaults
	written string // of the spec as stored
	spec    *v1beta1.SidecarSetSpec
}

// NewHistory reads revisions. It skips unreadable ones.
func NewHistory(revisions []*appsv1.ControllerRevision) History {
	h := History{byName: map[string]past{}, byHash: map[string][]past{}, bare: map[string]string{}}
	for _, r := range revisions {
		spec, err := revision.Restore(r)
		if err != nil {
			continue
		}
		full, written := revision.HashesOf(spec), revision.AsWritten(spec)
		p := past{hash: full.Full, written: written.Full, spec: defaults.Normal(spec)}
		h.byName[r.Name] = p
		h.add(p.hash, p)
		if p.written != p.hash {
			h.add(p.written, p)
		}
		h.bare[written.WithoutImage] = full.WithoutImage
	}
	return h
}

// add adds a version under a hash, unless an equal one exists there.
func (h *History) add(hash string, p past) {
	for _, other := range h.byHash[hash] {
		if equality.Semantic.DeepEqual(other.spec, p.spec) {
			return
		}
	}
	h.byHash[hash] = append(h.byHash[hash], p)
}

// of returns the spec, with defaults, with which the pod was injected or last updated, or nil if it is not known. The
// name of the revision in the pod only counts if the hash matches too: OpenKruise writes the name before it knows the
// newest revision.
func (h *History) of(injected *annotation.Injected) *v1beta1.SidecarSetSpec {
	if p, ok := h.byName[injected.ControllerRevision]; ok && (p.hash == injected.Hash || p.written == injected.Hash) {
		return p.spec
	}
	return h.only(injected.Hash)
}

// only returns the spec, with defaults, that has this hash, or nil if there is none or more than one.
func (h *History) only(hash string) *v1beta1.SidecarSetSpec {
	if same := h.byHash[hash]; len(same) == 1 {
		return same[0].spec
	}
	return nil
}

// full returns the hash of the same containers with their defaults. Pods that an earlier version of Refit has injected
// or updated carry the hash of the spec as stored.
func (h *History) full(hash string) string {
	if same := h.byHash[hash]; len(same) > 0 {
		return same[0].hash
	}
	return hash
}

// withoutImage is like full, for hashes without images.
func (h *History) withoutImage(hash string) string { return cmp.Or(h.bare[hash], hash) }
