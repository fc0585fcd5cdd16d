package cache

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestAnnotationsOfOtherObjectsAreBounded(t *testing.T) {
	t.Parallel()
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{"a": strings.Repeat("x", 200<<10), "b": strings.Repeat("x", 40<<10), "refit.dev/requested-by": "alice"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	trimmed, err := trimObject(request)
	if err != nil {
		t.Fatal(err)
	}
	got := trimmed.(*v1beta1.ContainerRecreateRequest)
	if len(got.Annotations) != 1 || got.Annotations["refit.dev/requested-by"] != "alice" || got.ManagedFields != nil {
		t.Errorf("cached are %d annotations and managedFields %v", len(got.Annotations), got.ManagedFields)
	}
}
