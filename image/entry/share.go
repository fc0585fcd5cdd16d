package entry

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// maxShare limits the entries of a namespace in a NodeImage, in bytes as sizeOf counts them. The writes of a NodeImage take
// longer the larger it is, and the pulls of all namespaces wait for them. If an addition exceeds it, finished pulls of the
// namespace are removed until half of it is left. Jobs wait while the other pulls need it, until they need less than half
// of it. One pull may be larger. sizeOf is an upper limit; what is stored of ten pulls is about 16 kB.
const maxShare = 24 << 10

// finished is a pull of a namespace that has ended and can be removed.
type finished struct {
	repository, tag string
	is              *v1beta1.ImageNamespaceSpec
	said            *v1beta1.ImageNamespaceStatus
	at              time.Time
	owners          []corev1.ObjectReference
}

// shareOf returns the size of the entries of a namespace, and of those that have not ended.
func shareOf(node *v1beta1.NodeImage, namespace string) (all, unfinished int) {
	for name := range node.Spec.Images {
		tags := node.Spec.Images[name].Tags
		for i := range tags {
			if !has(&tags[i], namespace) {
				continue
			}
			size := sizeOf(name, &tags[i], namespace)
			all += size
			said := image.TagStatus(&node.Status, image.Reference{Repository: name, Tag: tags[i].Tag})
			if finishedOf(name, &tags[i], said, namespace) == nil {
				unfinished += size
			}
		}
	}
	return all, unfinished
}

func has(tag *v1beta1.ImageTagSpec, namespace string) bool {
	return slices.ContainsFunc(tag.OwnerReferences, func(o corev1.ObjectReference) bool { return o.Namespace == namespace })
}

// finishedOf returns a pull that has ended for a namespace, or nil. Pulls that a kruise-daemon reports, or of which
// OpenKruise's CRD has dropped the namespaces, are never removed early: outcomes by job are not known.
func finishedOf(repository string, tag *v1beta1.ImageTagSpec, said *v1beta1.ImageTagStatus, namespace string) *finished {
	at, ended := endOf(tag, said, namespace)
	is := image.NamespaceSpec(tag, namespace)
	if !ended || is == nil || len(said.Namespaces) == 0 {
		return nil
	}
	return &finished{repository: repository, tag: tag.Tag, is: is, said: image.NamespaceStatus(said, namespace), at: at}
}

// compacted returns a copy of a NodeImage without the oldest finished pulls of a namespace, whose outcomes are recorded,
// and whether there were any.
func compacted(node *v1beta1.NodeImage, namespace string) (*v1beta1.NodeImage, bool) {
	var candidates []*finished
	for name := range node.Spec.Images {
		tags := node.Spec.Images[name].Tags
		for i := range tags {
			if !has(&tags[i], namespace) {
				continue
			}
			if c := finishedOf(name, &tags[i], image.TagStatus(&node.Status, image.Reference{Repository: name, Tag: tags[i].Tag}), namespace); c != nil {
				for _, o := range tags[i].OwnerReferences {
					if o.Namespace == namespace {
						c.owners = append(c.owners, o)
					}
				}
				candidates = append(candidates, c)
			}
		}
	}
	slices.SortFunc(candidates, oldest)
	after := copyOf(node)
	outcomes, removed := newRecorder(node, namespace), false
	for _, c := range candidates {
		if all, _ := shareOf(after, namespace); all <= maxShare/2 || !outcomes.add(c) {
			break
		}
		removeFrom(&after.Spec, c.repository, c.tag, func(tag *v1beta1.ImageTagSpec) { remove(tag, namespace, false) })
		removed = true
	}
	setRecords(after, outcomes.all)
	return after, removed
}

// copyOf returns a copy of what Request changes of a NodeImage. It shares the images and the status.
func copyOf(node *v1beta1.NodeImage) *v1beta1.NodeImage {
	after := &v1beta1.NodeImage{ObjectMeta: node.ObjectMeta, Status: node.Status}
	after.Annotations, after.Spec.Images = maps.Clone(node.Annotations), maps.Clone(node.Spec.Images)
	if after.Spec.Images == nil {
		after.Spec.Images = map[string]v1beta1.ImageSpec{}
	}
	return after
}

// removeFrom changes a tag of a spec. It removes the tag if it has no jobs any more, and the repository without tags.
func removeFrom(spec *v1beta1.NodeImageSpec, repository, tag string, change func(*v1beta1.ImageTagSpec)) {
	before := spec.Images[repository]
	after := *before.DeepCopy()
	at := slices.IndexFunc(after.Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag })
	change(&after.Tags[at])
	if len(after.Tags[at].OwnerReferences) == 0 {
		after.Tags = slices.Delete(after.Tags, at, at+1)
	}
	if len(after.Tags) == 0 {
		delete(spec.Images, repository)
		return
	}
	share(&after)
	spec.Images[repository] = after
}
