package kubelet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

func TestContainerReference(t *testing.T) {
	t.Parallel()
	got := kubelet.ContainerReference("shop", "web", "u1", "app")
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "u1", FieldPath: "spec.containers{app}"}
	if got != want {
		t.Errorf("%+v", got)
	}
}
