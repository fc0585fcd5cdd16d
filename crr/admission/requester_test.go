package admission_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

func TestReasonsAreOneShortLine(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"a\nb", strings.Repeat("x", 257), "\x1b[31m"} {
		r := crrtest.UserRequest("app")
		r.Annotations = map[string]string{"refit.dev/reason": reason}
		_, err := admission.Admit(r, observed(crrtest.WebPod()))
		refused(t, err, http.StatusBadRequest, "metadata.annotations[refit.dev/reason]")
	}
}

// A user may not decide by the annotation what counts as the old instance.
func TestAdmitDropsTheRecord(t *testing.T) {
	t.Parallel()
	request := crrtest.UserRequest("app")
	metav1.SetMetaDataAnnotation(&request.ObjectMeta, v1beta1.AnnotationInstances, `{"app":"containerd://x"}`)
	got, err := admission.Admit(request, observed(crrtest.WebPod()))
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := got.Annotations[v1beta1.AnnotationInstances]; ok {
		t.Errorf("admitted with %s", value)
	}
}
