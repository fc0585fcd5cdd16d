package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// PodProbeMarker runs probes of the pods it selects on their nodes, and marks the pods with the results: a condition, and
// labels and annotations by state. It never restarts a container or makes a pod not ready. It has the schema of v1beta1, so
// that the API server needs no conversion. It is stored in this version, so that a cluster can go back to an OpenKruise
// that does not know the other one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=`.status.matchedPods`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type PodProbeMarker struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec v1beta1.PodProbeMarkerSpec `json:"spec"`
	// +optional
	Status v1beta1.PodProbeMarkerStatus `json:"status,omitzero"`
}

// PodProbeMarkerList is a list of markers.
//
// +kubebuilder:object:root=true
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodProbeMarker `json:"items"`
}

type (
	// PodProbeMarkerSpec is described in v1beta1.
	PodProbeMarkerSpec = v1beta1.PodProbeMarkerSpec
	// PodContainerProbe is described in v1beta1.
	PodContainerProbe = v1beta1.PodContainerProbe
	// ContainerProbeSpec is described in v1beta1.
	ContainerProbeSpec = v1beta1.ContainerProbeSpec
	// ProbeMarkerPolicy is described in v1beta1.
	ProbeMarkerPolicy = v1beta1.ProbeMarkerPolicy
	// PodProbeMarkerStatus is described in v1beta1.
	PodProbeMarkerStatus = v1beta1.PodProbeMarkerStatus
)

// Names, keys and limits are described in v1beta1.
const (
	KindPodProbeMarker           = v1beta1.KindPodProbeMarker
	ConditionPodProbeMarkerReady = v1beta1.ConditionPodProbeMarkerReady
	FinalizerNodePodProbeCleanup = v1beta1.FinalizerNodePodProbeCleanup
	MaxProbesOfNode              = v1beta1.MaxProbesOfNode
	MaxProbesOfMarker            = v1beta1.MaxProbesOfMarker
	MaxProbesOfPod               = v1beta1.MaxProbesOfPod
	AnnotationOverridden         = v1beta1.AnnotationOverridden
	AnnotationPodProbe           = v1beta1.AnnotationPodProbe
	AnnotationPodProbeMarkerList = v1beta1.AnnotationPodProbeMarkerList
	LabelNodeType                = v1beta1.LabelNodeType
	NodeTypeVirtual              = v1beta1.NodeTypeVirtual
)
