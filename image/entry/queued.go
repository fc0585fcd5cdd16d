package entry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// A namespace has at most maxUnfinished pulls in a NodeImage that have not ended: a daemon runs two of them at a time,
// and each further one makes every write of the NodeImage slower, for which the pulls of all namespaces wait. Jobs that
// wait are reconciled when fewer than refill are left, and not after each pull.
const (
	maxUnfinished = 64
	refill        = maxUnfinished / 2
)

// Queued returns why a job has to wait for other pulls of its namespace before it is added to a NodeImage, or "".
func Queued(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob) string {
	reference, err := image.Parse(job.Spec.Image)
	if err != nil {
		return ""
	}
	tag := image.TagSpec(&node.Spec, reference)
	if tag != nil && unfinished(tag, image.TagStatus(&node.Status, reference), job.Namespace) {
		return "" // it joins this pull
	}
	if allUnfinished(node)[job.Namespace] < maxUnfinished {
		return ""
	}
	return fmt.Sprintf("%d pulls of namespace %s that have not ended", maxUnfinished, job.Namespace)
}

// Freed returns the namespaces whose waiting jobs may begin after a change of a NodeImage.
func Freed(before, after *v1beta1.NodeImage) []string {
	was, is := allUnfinished(before), allUnfinished(after)
	maps.DeleteFunc(was, func(namespace string, n int) bool { return n < refill || is[namespace] >= refill })
	return slices.Sorted(maps.Keys(was))
}

// allUnfinished returns the number of pulls that have not ended, by namespace.
func allUnfinished(node *v1beta1.NodeImage) map[string]int {
	n := map[string]int{}
	for name := range node.Spec.Images {
		tags := node.Spec.Images[name].Tags
		for i := range tags {
			said := image.TagStatus(&node.Status, image.Reference{Repository: name, Tag: tags[i].Tag})
			for _, namespace := range namespacesOf(&tags[i]) {
				if unfinished(&tags[i], said, namespace) {
					n[namespace]++
				}
			}
		}
	}
	return n
}

// unfinished reports whether a tag has a pull for a namespace that has not ended.
func unfinished(tag *v1beta1.ImageTagSpec, said *v1beta1.ImageTagStatus, namespace string) bool {
	if !slices.Contains(namespacesOf(tag), namespace) {
		return false
	}
	_, ended := endOf(tag, said, namespace)
	return !ended
}
