package jobplan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
)

// Changed returns which jobs are affected by a change of a NodeImage: owners are the jobs whose pulls have changed or
// are gone in a way that matters to Job. others says that jobs without a pull there are affected too, because there may
// be space for them where there was little, or because the node is another one.
func Changed(before, after *v1beta1.NodeImage) (owners []corev1.ObjectReference, others bool) {
	others = !maps.Equal(before.Labels, after.Labels) || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	freed := false
	seen := map[types.UID]bool{}
	add := func(tag *v1beta1.ImageTagSpec) {
		for _, o := range tag.OwnerReferences {
			if !seen[o.UID] {
				seen[o.UID] = true
				owners = append(owners, o)
			}
		}
	}
	for name := range before.Spec.Images {
		tags := before.Spec.Images[name].Tags
		for i := range tags {
			reference := image.Reference{Repository: name, Tag: tags[i].Tag}
			is := image.TagSpec(&after.Spec, reference)
			if is == nil {
				add(&tags[i])
				freed = true
				continue
			}
			if equality.Semantic.DeepEqual(&tags[i], is) && sameReported(image.TagStatus(&before.Status, reference), image.TagStatus(&after.Status, reference)) {
				continue
			}
			add(&tags[i])
			add(is)
			freed = freed || lost(tags[i].OwnerReferences, is.OwnerReferences)
		}
	}
	for name := range after.Spec.Images {
		tags := after.Spec.Images[name].Tags
		for i := range tags {
			if image.TagSpec(&before.Spec, image.Reference{Repository: name, Tag: tags[i].Tag}) == nil {
				add(&tags[i])
			}
		}
	}
	return owners, others || freed && entry.Crowded(&before.Spec)
}

// sameReported compares the fields in the status of a tag that Job reads. It ignores the number of bytes.
func sameReported(a, b *v1beta1.ImageTagStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	was, is := *a, *b
	was.Progress, was.PulledBytes, was.TotalBytes = is.Progress, is.PulledBytes, is.TotalBytes
	return equality.Semantic.DeepEqual(was, is)
}

// lost reports whether a tag has lost one of its jobs, and has become smaller.
func lost(before, after []corev1.ObjectReference) bool {
	there := map[types.UID]bool{}
	for _, o := range after {
		there[o.UID] = true
	}
	for _, o := range before {
		if !there[o.UID] {
			return true
		}
	}
	return false
}
