package record_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

const written = `{"revision":"r","updateTimestamp":"2026-11-22T00:00:00Z","lastContainerStatuses":{"app":{"imageID":"i"}}}`

func podWith(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations}}
}

// Annotations of old pods of OpenKruise have other keys; the newer key counts where a pod has both.
func TestRecordIsReadFromEveryKeyOfOpenKruise(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotations map[string]string
		revision    string
		grace       int32
	}{
		"none":    {},
		"current": {map[string]string{v1beta1.AnnotationInPlaceUpdateState: written}, "r", 0},
		"legacy":  {map[string]string{v1beta1.LegacyAnnotationInPlaceUpdateState: written, v1beta1.LegacyAnnotationInPlaceUpdateGrace: `{"graceSeconds":5}`}, "r", 5},
		"both": {map[string]string{
			v1beta1.AnnotationInPlaceUpdateState: written, v1beta1.LegacyAnnotationInPlaceUpdateState: `{"revision":"old"}`,
			v1beta1.AnnotationInPlaceUpdateGrace: `{"graceSeconds":7}`, v1beta1.LegacyAnnotationInPlaceUpdateGrace: `{"graceSeconds":5}`,
		}, "r", 7},
		"grace alone": {annotations: map[string]string{v1beta1.AnnotationInPlaceUpdateGrace: `{"graceSeconds":5}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.Read(podWith(test.annotations))
			if err != nil {
				t.Fatal(err)
			}
			if test.revision == "" {
				if got != nil {
					t.Errorf("%+v: the pod has no record", got)
				}
				return
			}
			if got.State.Revision != test.revision || (got.Grace != nil) != (test.grace != 0) || got.Grace != nil && got.Grace.GraceSeconds != test.grace {
				t.Errorf("revision %s, grace %+v; want %s, %d s", got.State.Revision, got.Grace, test.revision, test.grace)
			}
		})
	}
}

// A record that is written replaces what other keys hold: none of them may speak of an update that is over.
func TestWrittenRecordRemovesTheAnnotationsItReplaces(t *testing.T) {
	t.Parallel()
	pod := podWith(map[string]string{
		v1beta1.LegacyAnnotationInPlaceUpdateState: written, v1beta1.AnnotationInPlaceUpdateGrace: `{"graceSeconds":5}`, "other": "x",
	})
	got, err := record.Read(pod)
	if err != nil {
		t.Fatal(err)
	}
	text := written
	want := map[string]*string{
		v1beta1.AnnotationInPlaceUpdateState: &text, v1beta1.LegacyAnnotationInPlaceUpdateState: nil, v1beta1.AnnotationInPlaceUpdateGrace: nil,
	}
	if diff := cmp.Diff(want, got.Annotations(pod)); diff != "" {
		t.Error(diff)
	}
}

func TestRecordsOfSeveralSidecarSetsAreKeptInOneAnnotation(t *testing.T) {
	t.Parallel()
	pod := podWith(map[string]string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"mesh":{"revision":"other"}}`})
	kept := &record.Record{SidecarSet: "log"}
	kept.State.Refit = &v1beta1.InPlaceUpdateExtension{}
	kept.Begin(&plan.Update{Options: plan.Options{Revision: "r"}, Changes: plan.Changes{Containers: []plan.Change{{Container: "log", Image: "log:2"}}}}, time.Unix(1e9, 0))
	for key, value := range kept.Annotations(pod) {
		pod.Annotations[key] = *value
	}
	for set, want := range map[string]struct {
		revision string
		pending  bool
	}{"mesh": {"other", false}, "log": {"r", true}} {
		got, err := record.ReadSidecars(pod, set)
		if err != nil || got == nil || got.State.Revision != want.revision || got.Pending() != want.pending || got.SidecarSet != set {
			t.Errorf("record of %s: %+v, %v; want %+v", set, got, err, want)
		}
	}
	if got, err := record.ReadSidecars(pod, "absent"); got != nil || err != nil {
		t.Errorf("record of a SidecarSet without one: %+v, %v", got, err)
	}
}

// A container that is gone, and resources that the spec has, are not written again.
func TestOnlyWhatThePodDoesNotHaveRemains(t *testing.T) {
	t.Parallel()
	pod := podWith(nil)
	pod.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	kept := &record.Record{}
	kept.State.NextContainerImages = map[string]string{"log": "log:2", "removed": "x"}
	kept.State.NextContainerResources = map[string]corev1.ResourceRequirements{"app": {}}
	if got := kept.Remaining(pod); len(got.Containers) != 1 || got.Containers[0].Container != "log" || got.Containers[0].Image != "log:2" {
		t.Errorf("%+v: want the image of log alone", got)
	}
}

// Who updates the pod has to be told which annotation it is.
func TestUnreadableRecordIsAnErrorThatNamesTheAnnotation(t *testing.T) {
	t.Parallel()
	for _, key := range []string{v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState} {
		if got, err := record.Read(podWith(map[string]string{key: "{"})); got != nil || !errors.Is(err, record.ErrMalformed) || !strings.Contains(err.Error(), key+" of pod web") {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
}

func TestUnreadableRecordOfSidecarsIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", `{"log":1}`} {
		pod := podWith(map[string]string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: text})
		if _, err := record.ReadSidecars(pod, "log"); !errors.Is(err, record.ErrMalformed) {
			t.Errorf("%q: %v; want ErrMalformed", text, err)
		}
	}
}
