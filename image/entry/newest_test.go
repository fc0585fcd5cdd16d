package entry_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
)

// full is a NodeImage with as many images as it takes, of namespaces in turn, and their names in the order in which they were requested.
func full(t *testing.T, at func(i int) time.Time, namespaces ...string) (*v1beta1.NodeImage, []string) {
	t.Helper()
	node := &v1beta1.NodeImage{}
	var names []string
	for i := range v1beta1.MaxNodeImages {
		name := fmt.Sprintf("app%d", 1000-7*i%256) // no order of names
		j := of(namespaces[i%len(namespaces)], name+":1")
		if !entry.Request(node, j, nil, at(i)) {
			t.Fatal("no room")
		}
		names = append(names, name)
	}
	return node, names
}

// gone returns the images that are gone after one was requested for the namespace shop.
func gone(t *testing.T, node *v1beta1.NodeImage, names []string) []string {
	t.Helper()
	if !entry.Request(node, of("shop", "more:1"), nil, now.Add(time.Hour)) {
		t.Fatal("no room")
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := node.Spec.Images[name]; return ok })
}

// What was requested last is pulled least likely already.
func TestTheNewestPullMakesRoom(t *testing.T) {
	t.Parallel()
	node, names := full(t, func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) }, "mallory")
	if got := gone(t, node, names); len(got) != 1 || got[0] != names[len(names)-1] {
		t.Errorf("%q have made room, want the newest, %s", got, names[len(names)-1])
	}
	node, names = full(t, func(int) time.Time { return now }, "mallory")
	if got := gone(t, node, names); len(got) != 1 || got[0] != slices.Max(names) {
		t.Errorf("%q have made room, want the last by name of those that are as new, %s", got, slices.Max(names))
	}
	node, names = full(t, func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) }, "nancy", "mallory")
	if got := gone(t, node, names); len(got) != 1 || got[0] != names[len(names)-1] {
		t.Errorf("%q have made room, want the newest of the first by name of two namespaces that have as much, %s", got, names[len(names)-1])
	}
}

// A job that is one of too many for an image is forgotten whole: the entry does not say that it waits for it. Jobs for other tags and images
// make no room, however new they are.
func TestTheNewestJobOfAnImageMakesRoom(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{}
	job := func(namespace, text string, i int) *v1beta1.ImagePullJob {
		return of(namespace, text, func(j *v1beta1.ImagePullJob) {
			j.Name, j.UID = fmt.Sprint("j", i), types.UID(fmt.Sprint(namespace, text, i))
		})
	}
	for _, text := range []string{"app:v2", "other:v1"} {
		for i := range 2 {
			entry.Request(node, job("mallory", text, i), nil, now.Add(time.Hour))
		}
	}
	n := fill(node, 2000, func(i int) *v1beta1.ImagePullJob { return job("mallory", "app:v1", i) })
	if !entry.Request(node, job("shop", "app:v1", 0), nil, now) {
		t.Fatal("no room")
	}
	left := map[string]int{}
	for name, repository := range node.Spec.Images {
		for i := range repository.Tags {
			left[name+":"+repository.Tags[i].Tag] = len(repository.Tags[i].OwnerReferences)
		}
	}
	if want := map[string]int{"app:v1": v1beta1.MaxTagOwners, "app:v2": 2, "other:v1": 2}; n != v1beta1.MaxTagOwners || !maps.Equal(left, want) {
		t.Errorf("jobs %v, want %v", left, want)
	}
	tags := node.Spec.Images["app"].Tags
	tag := tags[slices.IndexFunc(tags, func(tag v1beta1.ImageTagSpec) bool { return tag.Tag == "v1" })]
	if len(tag.Namespaces) != 2 || len(tag.Namespaces[0].Jobs) != n-1 || len(tag.Namespaces[1].Jobs) != 1 {
		t.Fatalf("%d namespaces", len(tag.Namespaces))
	}
	last := types.UID(fmt.Sprint("mallory", "app:v1", n-1))
	for i, o := range tag.OwnerReferences {
		if o.UID == last || i < n-1 && tag.Namespaces[0].Jobs[i].UID == last {
			t.Errorf("the newest job is still there, at %d", i)
		}
	}
}
