package kube

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestCachedRequestsKeepWhatTheDaemonReads(t *testing.T) {
	t.Parallel()
	request := &v1beta1.ContainerRecreateRequest{}
	request.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 1000)}
	keys := []string{v1beta1.AnnotationTraceparent, v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason, v1beta1.AnnotationAdmittedAt, v1beta1.AnnotationInstances}
	for _, key := range keys {
		request.Annotations[key] = "kept"
	}
	trimmed, err := trimRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	got := trimmed.(*v1beta1.ContainerRecreateRequest).Annotations
	if len(got) != len(keys) {
		t.Errorf("%d annotations, want %d", len(got), len(keys))
	}
	for _, key := range keys {
		if got[key] != "kept" {
			t.Errorf("annotation %s is lost", key)
		}
	}
}
