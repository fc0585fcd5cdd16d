package record_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
)

// An old OpenKruise has written them: they would be adopted again at each look.
func TestRecordReplacesTheLegacyAnnotations(t *testing.T) {
	t.Parallel()
	pod := running()
	for _, key := range []string{v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace} {
		pod.Annotations[key] = "{}"
	}
	changes := begun().Annotations(pod)
	if len(changes) != 4 || changes[v1beta1.AnnotationInPlaceUpdateState] == nil {
		t.Fatalf("%v", changes)
	}
	for _, key := range []string{v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace} {
		if value, ok := changes[key]; !ok || value != nil {
			t.Errorf("%s is not removed", key)
		}
	}
}
