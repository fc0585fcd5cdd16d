package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
)

// GroupVersion returns apps.kruise.io/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1beta1.Group, Version: "v1alpha1"}
}

// AddToScheme registers the types of this package, and the meta types that every group needs, with s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{},
		&PodProbeMarker{}, &PodProbeMarkerList{},
		&NodePodProbe{}, &NodePodProbeList{},
		&NodeImage{}, &NodeImageList{},
		&ImagePullJob{}, &ImagePullJobList{},
		&ImageListPullJob{}, &ImageListPullJobList{},
		&SidecarSet{}, &SidecarSetList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
