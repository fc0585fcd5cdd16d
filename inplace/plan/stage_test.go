package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
)

// b shares an annotation with c, and c another with a: all three are restarted together, since each annotation takes effect for all
// that refer to it.
func TestContainersThatShareMetadataAreRestartedTogether(t *testing.T) {
	t.Parallel()
	metadata := func(keys ...string) v1beta1.InPlaceUpdateMetadata {
		of := v1beta1.InPlaceUpdateMetadata{Annotations: map[string]string{}}
		for _, key := range keys {
			of.Annotations[key] = "new"
		}
		return of
	}
	changes := plan.Changes{Order: [][]string{{"a"}, {"b", "c", "d"}}, Containers: []plan.Change{
		{Container: "b", Metadata: metadata("y")}, {Container: "c", Metadata: metadata("x", "y")}, {Container: "a", Metadata: metadata("x")}, {Container: "d", Metadata: metadata("z")},
	}}
	var got [][]string
	for _, stage := range changes.Stages(&corev1.PodSpec{}) {
		got = append(got, stage.Containers())
	}
	if diff := cmp.Diff([][]string{{"b", "c", "a"}, {"d"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stage := changes.Stages(&corev1.PodSpec{})[0]
	if free := stage.Without(func(c *plan.Change) bool { return c.Container == "a" }); free != nil {
		t.Errorf("%v goes without a", free.Containers())
	}
}

// A container that no group names is updated with the first group.
func TestContainersThatTheOrderDoesNotNameAreInTheFirstGroup(t *testing.T) {
	t.Parallel()
	changes := plan.Changes{Order: [][]string{{"a"}, {"b"}}, Containers: []plan.Change{
		{Container: "a", Image: "a:2"}, {Container: "b", Image: "b:2"}, {Container: "other", Image: "other:2"},
	}}
	var got [][]string
	for _, stage := range changes.Stages(&corev1.PodSpec{}) {
		got = append(got, stage.Containers())
	}
	if diff := cmp.Diff([][]string{{"a", "other"}, {"b"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
