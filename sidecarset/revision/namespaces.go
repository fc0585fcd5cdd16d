package revision

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Merged returns the revisions of a SidecarSet in the manager's namespace, and those in OpenKruise's namespace without
// a copy in the manager's.
func Merged(namespace string, all []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var merged []*appsv1.ControllerRevision
	own := map[string]bool{}
	for _, r := range all {
		if r.Namespace == namespace {
			own[r.Name] = true
			merged = append(merged, r)
		}
	}
	for _, r := range all {
		if r.Namespace != namespace && !own[r.Name] {
			merged = append(merged, r)
		}
	}
	return merged
}

// Copy returns a copy of a revision for the other one of the two namespaces.
func Copy(set *v1beta1.SidecarSet, namespace string, of *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	revision := &appsv1.ControllerRevision{Data: *of.Data.DeepCopy(), Revision: of.Revision}
	revision.Namespace, revision.Name, revision.Labels = namespace, of.Name, maps.Clone(of.Labels)
	revision.OwnerReferences = ownedBy(set)
	revision.Annotations = map[string]string{}
	for _, key := range []string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetHashWithoutImage} {
		if value, ok := of.Annotations[key]; ok {
			revision.Annotations[key] = value
		}
	}
	return revision
}

// Follow returns a copy of a revision with the number and the custom version of its counterpart in the other namespace,
// or nil if they are equal already.
func Follow(revision, of *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	version, named := of.Labels[v1beta1.LabelSidecarSetCustomVersion]
	was, wasNamed := revision.Labels[v1beta1.LabelSidecarSetCustomVersion]
	if revision.Revision == of.Revision && version == was && named == wasNamed {
		return nil
	}
	revision = revision.DeepCopy()
	revision.Revision = of.Revision
	switch {
	case named && revision.Labels == nil:
		revision.Labels = map[string]string{v1beta1.LabelSidecarSetCustomVersion: version}
	case named:
		revision.Labels[v1beta1.LabelSidecarSetCustomVersion] = version
	default:
		delete(revision.Labels, v1beta1.LabelSidecarSetCustomVersion)
	}
	return revision
}
