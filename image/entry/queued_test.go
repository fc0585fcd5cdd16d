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
		entry.Request(node, nth("mallory", i), nil, now)
	}
	entry.Request(node, nth("shop", 0), nil, now)
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

// most is the number of pulls that a namespace begins in an empty NodeImage.
func most(t *testing.T) int {
	t.Helper()
	for n := range 100 {
		if entry.Queued(pulling(n), nth("mallory", 99)) != "" {
			return n
		}
	}
	t.Fatal("there is no limit")
	return 0
}

// A NodeImage does not grow with the number of jobs of one namespace, because everybody's pulls wait for its writes.
func TestANamespaceWaitsForItsOwnPulls(t *testing.T) {
	t.Parallel()
	most := most(t)
	if most < 8 || most > 16 {
		t.Fatalf("%d pulls at a time", most)
	}
	const says = "24 KiB of pulls of namespace mallory that have not ended"
	for name, tc := range map[string]struct {
		node *v1beta1.NodeImage
		job  *v1beta1.ImagePullJob
		want string
	}{
		"one less than the most": {pulling(most - 1), nth("mallory", 99), ""},
		"the most":               {pulling(most), nth("mallory", 99), says},
		"more than that":         {pulling(most + 1), nth("mallory", 99), says}, // each other text would be a write for each job that waits
		"some have ended":        {ends(pulling(most), 1), nth("mallory", 99), ""},
		"one that is pulled":     {pulling(most), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.UID, j.Spec.Image = "mallory", "again", "mallory-7:v1" }), says},
		"of another namespace":   {pulling(most), nth("bar", 0), ""},
		"no image":               {pulling(most), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.Spec.Image = "mallory", "NO" }), ""},
	} {
		if got := entry.Queued(tc.node, tc.job); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Each job of an image makes its entry larger.
func TestJobsOfOneImageWaitForEachOther(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{}
	same := func(i int) *v1beta1.ImagePullJob {
		return of("mallory", "app:v1", func(j *v1beta1.ImagePullJob) { j.UID = types.UID(fmt.Sprint(i)) })
	}
	n := 0
	for ; entry.Queued(node, same(n)) == "" && n < 1000; n++ {
		entry.Request(node, same(n), nil, now)
	}
	if n < 16 || n > 64 {
		t.Errorf("%d jobs in one entry", n)
	}
}

// Jobs that wait are reconciled when half of the share is free, not after each pull.
func TestJobsThatWaitBeginWhenHalfOfThePullsHaveEnded(t *testing.T) {
	t.Parallel()
	most := most(t)
	full, half := pulling(most), 0
	for ; len(entry.Freed(full, ends(full, half))) == 0; half++ {
		if half == most {
			t.Fatal("never")
		}
	}
	if half < most/3 || half > most*2/3 {
		t.Errorf("when %d of %d have ended", half, most)
	}
	for name, tc := range map[string]struct {
		before, after *v1beta1.NodeImage
		want          []string
	}{
		"nothing has changed": {full, full, nil},
		"one has ended":       {full, ends(full, 1), nil},
		"less than half":      {ends(full, 1), ends(full, half-1), nil},
		"half":                {ends(full, half-1), ends(full, half), []string{"mallory"}},
		"more than half":      {full, ends(full, most), []string{"mallory"}},
		"long after":          {ends(full, half), ends(full, half+1), nil},
		"more have begun":     {pulling(2), full, nil},
	} {
		if got := entry.Freed(tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
