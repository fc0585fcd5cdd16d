package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group shared with OpenKruise.
const Group = "apps.kruise.io"

// Kind and Resource of ContainerRecreateRequest, for a dynamic client or a RESTMapper.
const (
	KindContainerRecreateRequest     = "ContainerRecreateRequest"
	ResourceContainerRecreateRequest = "containerrecreaterequests"
)

// GroupVersion returns apps.kruise.io/v1beta1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1beta1"} }

// AddToScheme registers the types of this package, and the meta types that every group needs, with s. It is a function and
// not a scheme builder so that nothing happens on import.
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
