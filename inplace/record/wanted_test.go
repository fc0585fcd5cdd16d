package record_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// OpenKruise keeps the whole update in another annotation while the pod drains.
func TestUpdateThatOpenKruiseHasBegunIsAdopted(t *testing.T) {
	t.Parallel()
	r := &record.Record{
		State: v1beta1.InPlaceUpdateState{Revision: "k", UpdateTimestamp: metav1.NewTime(now)},
		Grace: &v1beta1.InPlaceUpdateSpec{
			ContainerImages: map[string]string{"app": "app:2"}, ContainerResources: map[string]corev1.ResourceRequirements{"log": cpu("50m")},
			ContainerRefMetadata: map[string]v1beta1.InPlaceUpdateMetadata{"mesh": annotations("two")},
			MetaDataPatch:        []byte(`{"metadata":{"labels":{"team":"shop"},"annotations":{"gone":null}}}`), GraceSeconds: 5,
		},
	}
	got, err := r.Adopt()
	if err != nil {
		t.Fatal(err)
	}
	want := v1beta1.InPlaceUpdateState{
		Revision: "k", UpdateTimestamp: metav1.NewTime(now), UpdateImages: true, UpdateResources: true, UpdateEnvFromMetadata: true,
		NextContainerImages:      map[string]string{"app": "app:2"},
		NextContainerResources:   map[string]corev1.ResourceRequirements{"log": cpu("50m")},
		NextContainerRefMetadata: map[string]v1beta1.InPlaceUpdateMetadata{"mesh": annotations("two")},
		Refit:                    &v1beta1.InPlaceUpdateExtension{Labels: map[string]*string{"team": new("shop")}, Annotations: map[string]*string{"gone": nil}},
	}
	if diff := cmp.Diff(want, got.State); diff != "" || got.Grace != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wanted := record.Wanted(running(), r)
	if wanted.Spec.Containers[0].Image != "app:2" || wanted.Labels["team"] != "shop" {
		t.Errorf("what the pod is to be like: %+v", wanted)
	}
	r.Grace.MetaDataPatch = nil
	if got, err := r.Adopt(); err != nil || got.Extension().Labels != nil {
		t.Errorf("without a patch: %+v, %v", got, err)
	}
	r.Grace.MetaDataPatch = []byte("{")
	if _, err := r.Adopt(); !errors.Is(err, record.ErrMalformed) {
		t.Errorf("%v: want ErrMalformed", err)
	}
	if wanted := record.Wanted(running(), r); wanted.Spec.Containers[0].Image != "app:1" {
		t.Errorf("what cannot be read is wanted: %+v", wanted)
	}
}

func TestWantedIsThePodAtTheEndOfTheUpdate(t *testing.T) {
	t.Parallel()
	pod := running()
	if diff := cmp.Diff(plan.Template(pod), record.Wanted(pod, nil)); diff != "" {
		t.Errorf("without an update (-want +got):\n%s", diff)
	}
	resources := cpu("200m")
	resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	kept := begun(
		plan.Change{Container: "app", Image: "app:2", Resources: &resources}, plan.Change{Container: "log", Metadata: labels("db")},
		plan.Change{Container: "mesh", Metadata: annotations("two")},
	)
	want := plan.Template(pod)
	want.Spec.Containers[0].Image, want.Spec.Containers[0].Resources = "app:2", resources
	want.Labels = map[string]string{"tier": "db", "team": "shop"}
	want.Annotations = map[string]string{"config": "two"}
	if diff := cmp.Diff(want, record.Wanted(pod, kept)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pod.Spec.Containers[0].Image != "app:1" || pod.Labels["tier"] != "web" || pod.Annotations["gone"] != "x" {
		t.Errorf("the pod was changed: %+v", pod)
	}
	pod.Labels, pod.Annotations = nil, nil
	if got := record.Wanted(pod, kept); got.Labels["team"] != "shop" || got.Annotations["config"] != "two" {
		t.Errorf("a pod without labels and annotations: %+v", got)
	}
}

func TestResourcesThatTheSpecHasAreNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		has, want corev1.ResourceRequirements
		remains   bool
	}{
		"none yet":                  {corev1.ResourceRequirements{}, cpu("200m"), true},
		"others":                    {cpu("100m"), cpu("200m"), true},
		"these":                     {cpu("200m"), cpu("0.2"), false},
		"the limit is missing":      {cpu("200m"), corev1.ResourceRequirements{Limits: cpu("1").Requests}, true},
		"more than is asked for":    {corev1.ResourceRequirements{Requests: cpu("1").Requests, Limits: cpu("1").Requests}, corev1.ResourceRequirements{Limits: cpu("1").Requests}, false},
		"the limit is another":      {corev1.ResourceRequirements{Limits: cpu("1").Requests}, corev1.ResourceRequirements{Limits: cpu("2").Requests}, true},
		"requests, but not limits":  {cpu("1"), corev1.ResourceRequirements{Requests: cpu("1").Requests, Limits: cpu("1").Requests}, true},
		"a pod that was never told": {cpu("1"), corev1.ResourceRequirements{}, false},
	} {
		pod := running()
		pod.Spec.Containers[0].Resources = tt.has
		kept := &record.Record{State: v1beta1.InPlaceUpdateState{NextContainerResources: map[string]corev1.ResourceRequirements{"app": tt.want}}}
		left := kept.Remaining(pod).Containers
		if (len(left) == 1) != tt.remains || len(left) == 1 && (left[0].Resources == nil || left[0].Sidecar) {
			t.Errorf("%s: %+v", name, left)
		}
	}
	kept := &record.Record{State: v1beta1.InPlaceUpdateState{NextContainerImages: map[string]string{"mesh": "mesh:2"}}}
	if left := kept.Remaining(running()).Containers; len(left) != 1 || !left[0].Sidecar {
		t.Errorf("a native sidecar: %+v", left)
	}
}

// A command that is cancelled takes back what it has asked for, also in another form.
func TestQuantitiesThatAnotherCommandHasAskedForSinceAreNotTakenBack(t *testing.T) {
	t.Parallel()
	gigabyte := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	kept := begun(plan.Change{Container: "app", Resources: &corev1.ResourceRequirements{Requests: cpu("200m").Requests, Limits: gigabyte}})
	without := func(requests string) *record.Record {
		asked := corev1.ResourceRequirements{Requests: cpu(requests).Requests, Limits: gigabyte}
		return kept.Without(plan.Changes{Containers: []plan.Change{{Container: "app", Resources: &asked}}})
	}
	before := copyOf(t, kept)
	left := without("100m").State.NextContainerResources["app"]
	if diff := cmp.Diff(cpu("200m").Requests, left.Requests); diff != "" || len(left.Limits) != 0 {
		t.Errorf("%v are left, requests (-want +got):\n%s", left, diff)
	}
	if got := without("0.2"); got.Pending() {
		t.Errorf("%+v", got.State.NextContainerResources)
	}
	if diff := cmp.Diff(before.State.NextContainerResources, kept.State.NextContainerResources); diff != "" {
		t.Errorf("the record itself was changed (-want +got):\n%s", diff)
	}
}

func TestUnreadableRecordsOfSidecarsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "null"} {
		pod := podWith(map[string]string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: text})
		kept := &record.Record{SidecarSet: "log", State: v1beta1.InPlaceUpdateState{Revision: "r"}}
		for key, value := range kept.Annotations(pod) {
			pod.Annotations[key] = *value
		}
		if got, err := record.ReadSidecars(pod, "log"); err != nil || got == nil || got.State.Revision != "r" {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
