package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// NodePodProbe lists the probes that one node's daemon runs, and their results. It has the node's name. The manager owns
// the whole spec: entries of others are removed. It has the schema of v1beta1, so that the API server needs no conversion,
// and is stored in this version, like PodProbeMarkers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="DELAYED",type=string,JSONPath=`.status.conditions[?(@.type=="Delayed")].status`
// +kubebuilder:printcolumn:name="FAILED",type=string,JSONPath=`.status.podProbeStatuses[*].probeStates[?(@.state=="Failed")].name`,description="The first probe that fails"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.podProbeStatuses[*].probeStates[?(@.state=="Failed")].message`,description="What that probe has printed"
// +kubebuilder:printcolumn:name="DELAY",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Delayed")].message`
type NodePodProbe struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec v1beta1.NodePodProbeSpec `json:"spec,omitzero"`
	// +optional
	Status v1beta1.NodePodProbeStatus `json:"status,omitzero"`
}

// NodePodProbeList is a list of nodes' probes.
//
// +kubebuilder:object:root=true
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePodProbe `json:"items"`
}

type (
	// NodePodProbeSpec is described in v1beta1.
	NodePodProbeSpec = v1beta1.NodePodProbeSpec
	// PodProbe is described in v1beta1.
	PodProbe = v1beta1.PodProbe
	// ContainerProbe is described in v1beta1.
	ContainerProbe = v1beta1.ContainerProbe
	// NodePodProbeStatus is described in v1beta1.
	NodePodProbeStatus = v1beta1.NodePodProbeStatus
	// PodProbeStatus is described in v1beta1.
	PodProbeStatus = v1beta1.PodProbeStatus
	// ProbeState is described in v1beta1.
	ProbeState = v1beta1.ProbeState
	// ContainerProbeState is described in v1beta1.
	ContainerProbeState = v1beta1.ContainerProbeState
)

// The condition and the states are described in v1beta1.
const (
	ConditionProbesDelayed = v1beta1.ConditionProbesDelayed
	ProbeSucceeded         = v1beta1.ProbeSucceeded
	ProbeFailed            = v1beta1.ProbeFailed
	ProbeUnknown           = v1beta1.ProbeUnknown
)
