package upgrade

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

// History is what is known of the versions of a SidecarSet.
type History struct {
	byName map[string]past
	byHash map[string][]past
}

type past struct {
	hash string
	spec *v1beta1.SidecarSetSpec
}

// NewHistory reads revisions. Those that cannot be read are left out.
func NewHistory(revisions []*appsv1.ControllerRevision) History {
	h := History{byName: map[string]past{}, byHash: map[string][]past{}}
	for _, r := range revisions {
		spec, err := revision.Restore(r)
		if err != nil {
			continue
		}
		p := past{hash: revision.HashesOf(spec).Full, spec: spec}
		h.byName[r.Name] = p
		h.byHash[p.hash] = append(h.byHash[p.hash], p)
	}
	return h
}

// of is the spec with which the pod was injected or last updated; nil if that is not known. The name of the revision counts
// only if its hash is that of the pod: OpenKruise writes it before it knows the newest.
func (h *History) of(injected *annotation.Injected) *v1beta1.SidecarSetSpec {
	if p, ok := h.byName[injected.ControllerRevision]; ok && p.hash == injected.Hash {
		return p.spec
	}
	if same := h.byHash[injected.Hash]; len(same) == 1 {
		return same[0].spec
	}
	return nil
}
