package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func TestBothVersionsFitIntoOneScheme(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, gv := range []string{"v1alpha1", "v1beta1"} {
		for _, kind := range []string{"ContainerRecreateRequest", "ContainerRecreateRequestList", "PodProbeMarker", "NodePodProbeList"} {
			gvk := v1beta1.GroupVersion().WithKind(kind)
			gvk.Version = gv
			if _, err := scheme.New(gvk); err != nil {
				t.Error(err)
			}
		}
	}
}
