package openkruise_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// differs are the texts of differences in a direction.
func differs(direction openkruise.Direction, found []openkruise.Difference) []string {
	var texts []string
	for _, d := range found {
		if d.Direction == direction {
			texts = append(texts, d.Differs)
		}
	}
	return texts
}

// expect compares what differs, by direction. Each difference has to say what to do.
func expect(t *testing.T, found []openkruise.Difference, to, from []string) {
	t.Helper()
	if diff := cmp.Diff(to, differs(openkruise.ToRefit, found)); diff != "" {
		t.Errorf("to Refit (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(from, differs(openkruise.FromRefit, found)); diff != "" {
		t.Errorf("from Refit (-want +got):\n%s", diff)
	}
	for _, d := range found {
		if d.Do == "" || d.Kind == "" {
			t.Errorf("%+v does not say of what, or what to do", d)
		}
	}
}

// newSet returns a SidecarSet as OpenKruise stores it, without differences.
func newSet(changes ...func(*v1beta1.SidecarSet)) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "registry.example.com/agent:1"}}}
	defaults.Complete(&set.Spec)
	for _, change := range changes {
		change(set)
	}
	hashes := revision.HashesOf(&set.Spec)
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	if _, given := set.Annotations[v1beta1.AnnotationSidecarSetHash]; !given {
		set.Annotations[v1beta1.AnnotationSidecarSetHash] = hashes.Full
		set.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage] = hashes.WithoutImage
	}
	return set
}

// clusterOf is a cluster with kruise-manager and SidecarSets.
func clusterOf(sets ...*v1beta1.SidecarSet) *openkruise.Cluster {
	c := &openkruise.Cluster{
		SidecarSets: sets, Gates: openkruise.Gates(managerWith()), Theirs: openkruise.Revisions{}, Ours: openkruise.Revisions{},
		Excluded:   []string{"left-out"},
		Namespaces: map[string]map[string]string{"shop": {}, "kube-system": {}, "left-out": {}, "edge": {"control-plane": "edge"}, "quiet": {v1beta1.LabelSidecarInjection: "disabled"}},
	}
	c.Prepare()
	return c
}

func TestCollectionNamesTheFirstObjectsOfADifference(t *testing.T) {
	t.Parallel()
	var c openkruise.Collection
	add := func(kind, name, what string) {
		c.Add(openkruise.Difference{Direction: openkruise.ToRefit, Kind: kind, Name: name, Differs: what, Do: "look"})
	}
	for _, name := range []string{"shop/a", "shop/b", "shop/c", "shop/d", "shop/e"} {
		add("Pod", name, "x")
	}
	add("Pod", "shop/f", "y")
	add("NetworkPolicy", "a", "z")
	add("NetworkPolicy", "b", "z")
	add("revisions", "", "w")
	c.Add(openkruise.Difference{Direction: openkruise.FromRefit, Kind: "Pod", Name: "shop/a", Differs: "x", Do: "look"})
	var got []string
	for _, entry := range c.Entries(openkruise.ToRefit) {
		got = append(got, entry.Object+": "+entry.Differs)
	}
	want := []string{"Pods shop/a, shop/b, shop/c and 2 more: x", "Pod shop/f: y", "NetworkPolicies a, b: z", "revisions: w"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if from := c.Entries(openkruise.FromRefit); len(from) != 1 || from[0].Object != "Pod shop/a" {
		t.Errorf("from Refit: %+v", from)
	}
}

// Differences that are distinct for each object, because their message has its name, do not take unbounded memory.
func TestCollectionIsBounded(t *testing.T) {
	t.Parallel()
	var c openkruise.Collection
	for i := range 1500 {
		text := intstr.FromInt32(int32(i))
		c.Add(openkruise.Difference{Direction: openkruise.ToRefit, Kind: "Pod", Name: "a", Differs: text.String()})
	}
	if kept := len(c.Entries(openkruise.ToRefit)); kept != 1000 || c.Omitted() != 500 {
		t.Errorf("%d kept, %d omitted", kept, c.Omitted())
	}
	c.Add(openkruise.Difference{Direction: openkruise.ToRefit, Kind: "Pod", Name: "b", Differs: "7"})
	if c.Omitted() != 500 || c.Entries(openkruise.ToRefit)[7].Object != "Pods a, b" {
		t.Error("an object with a known difference is not added")
	}
}

func TestObjectsAreCounted(t *testing.T) {
	t.Parallel()
	var o openkruise.Objects
	for want, name := range map[string]string{"1 object: a": "a"} {
		if o.Add(name); o.String() != want {
			t.Errorf("%q", o.String())
		}
	}
	o.Add("b")
	if o.String() != "2 objects: a, b" {
		t.Errorf("%q", o.String())
	}
	o.Count = 9
	if o.String() != "9 objects: a, b and 7 more" {
		t.Errorf("%q", o.String())
	}
}

func TestDirections(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]openkruise.Direction{
		"": nil, "to-refit": {openkruise.ToRefit}, "from-refit": {openkruise.FromRefit}, "both": {openkruise.ToRefit, openkruise.FromRefit},
	} {
		got, err := openkruise.Directions(name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := openkruise.Directions("back"); err == nil || err.Error() != `direction "back": want to-refit, from-refit or both` {
		t.Errorf("back: %v", err)
	}
}
