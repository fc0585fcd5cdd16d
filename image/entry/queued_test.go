package entry_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
)

// nth is a job of a namespace for its n-th image.
func nth(namespace string, n int) *v1beta1.ImagePullJob {
	return job(func(j *v1beta1.ImagePullJob) {
		j.Namespace, j.Name, j.Spec.Image = namespace, fmt.Sprint("j-", n), fmt.Sprintf("%s-%d:v1", namespace, n)
		j.UID = types.UID(fmt.Sprint(namespace, n))
	})
}

// pulling is a NodeImage with n pulls of mallory and one of shop, none of which has ended.
func pulling(n int) *v1beta1.NodeImage {
	node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for i := range n {
		entry.Request(&node.Spec, &node.Status, nth("mallory", i), nil, now)
	}
	entry.Request(&node.Spec, &node.Status, nth("shop", 0), nil, now)
	node.Status = image.Status(node.Spec, nil)
	return node
}

// ends ends the first n pulls of mallory.
func ends(node *v1beta1.NodeImage, n int) *v1beta1.NodeImage {
	after := node.DeepCopy()
	states := map[image.Target]image.State{}
	for _, want := range image.Wanted(after.Spec) {
		for i := range n {
			if want.Repository == fmt.Sprint("mallory-", i) {
				states[want.Target] = image.State{Phase: v1beta1.ImagePhaseFailed, Version: want.Version, Started: now, Completed: now}
			}
		}
	}
	after.Status = image.Status(after.Spec, states)
	return after
}

// A NodeImage does not grow with the number of jobs of one namespace, because everybody's pulls wait for its writes.
func TestANamespaceWaitsForItsOwnPulls(t *testing.T) {
	t.Parallel()
	const most = "64 pulls of namespace mallory that have not ended"
	for name, tc := range map[string]struct {
		node *v1beta1.NodeImage
		job  *v1beta1.ImagePullJob
		want string
	}{
		"one less than the most": {pulling(63), nth("mallory", 99), ""},
		"the most":               {pulling(64), nth("mallory", 99), most},
		"some have ended":        {ends(pulling(64), 1), nth("mallory", 99), ""},
		"an image that is there": {pulling(64), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.UID, j.Spec.Image = "mallory", "again", "mallory-7:v1" }), ""},
		"one that has ended":     {ends(pulling(65), 1), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.UID, j.Spec.Image = "mallory", "again", "mallory-0:v1" }), most},
		"of another namespace":   {pulling(64), nth("bar", 0), ""},
		"no image":               {pulling(64), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.Spec.Image = "mallory", "NO" }), ""},
	} {
		if got := entry.Queued(tc.node, tc.job); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Jobs that wait are reconciled when half of the pulls have ended, not after each of them.
func TestJobsThatWaitBeginWhenHalfOfThePullsHaveEnded(t *testing.T) {
	t.Parallel()
	full := pulling(64)
	for name, tc := range map[string]struct {
		before, after *v1beta1.NodeImage
		want          []string
	}{
		"nothing has changed": {full, full, nil},
		"one has ended":       {full, ends(full, 1), nil},
		"less than half":      {ends(full, 1), ends(full, 32), nil},
		"half":                {ends(full, 32), ends(full, 33), []string{"mallory"}},
		"more than half":      {full, ends(full, 64), []string{"mallory"}},
		"long after":          {ends(full, 33), ends(full, 34), nil},
		"more have begun":     {pulling(20), full, nil},
	} {
		if got := entry.Freed(tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
