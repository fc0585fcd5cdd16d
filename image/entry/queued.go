package entry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// Queued returns why a job has to wait for other pulls of its namespace before it is added to a NodeImage, or "".
func Queued(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob) string {
	if _, err := image.Parse(job.Spec.Image); err != nil || held(node, job.Namespace) < maxShare {
		return ""
	}
	// Without the number of pulls: each change of it would be a write of the status of each job that waits.
	return fmt.Sprintf("%d KiB of pulls of namespace %s that have not ended", maxShare>>10, job.Namespace)
}

// held returns the size of the entries of a namespace that cannot be removed for others.
func held(node *v1beta1.NodeImage, namespace string) int {
	all, unfinished := shareOf(node, namespace)
	if all > unfinished && recordFull(node, namespace) {
		return all
	}
	return unfinished
}

// Freed returns the namespaces whose waiting jobs may begin after a change of a NodeImage: they are reconciled when half of
// the share is free, and not after each pull.
func Freed(before, after *v1beta1.NodeImage) []string {
	var freed []string
	for _, namespace := range slices.Sorted(maps.Keys(namespacesIn(before))) {
		if held(before, namespace) >= maxShare/2 && held(after, namespace) < maxShare/2 {
			freed = append(freed, namespace)
		}
	}
	return freed
}

func namespacesIn(node *v1beta1.NodeImage) map[string]bool {
	all := map[string]bool{}
	for name := range node.Spec.Images {
		tags := node.Spec.Images[name].Tags
		for i := range tags {
			for _, namespace := range namespacesOf(&tags[i]) {
				all[namespace] = true
			}
		}
	}
	return all
}
