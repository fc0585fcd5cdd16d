package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePodProbe lists the probes that one node's daemon runs, and their results. It has the node's name. The manager owns
// the whole spec: entries of others are removed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
	Spec NodePodProbeSpec `json:"spec,omitzero"`
	// +optional
	Status NodePodProbeStatus `json:"status,omitzero"`
}

// NodePodProbeList is a list of nodes' probes.
//
// +kubebuilder:object:root=true
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePodProbe `json:"items"`
}

// NodePodProbeSpec lists what the node has to probe.
type NodePodProbeSpec struct {
	// PodProbes are ordered by namespace, name and UID. The list is atomic, because a kruise-manager may temporarily list a
	// pod and its replacement with the same name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	PodProbes []PodProbe `json:"podProbes,omitempty"`
}

// PodProbe is one pod with its probes.
type PodProbe struct {
	// Name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// UID of the pod; another pod of the same name is not probed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`
	// IP of the pod; empty until it has one.
	// +required
	// +kubebuilder:validation:MaxLength=45
	IP string `json:"IP"` //nolint:tagliatelle // the name on the wire
	// Probes of the containers of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is one probe of one container. Its ports are numbers: names in a marker have been resolved.
type ContainerProbe struct {
	// Name is "<PodProbeMarker>#<probe>"; the marker is one of the pod's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// ContainerName is the container that is probed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ContainerName string `json:"containerName"`
	// +required
	Probe ContainerProbeSpec `json:"probe"`
}

// NodePodProbeStatus has the results of the probes.
type NodePodProbeStatus struct {
	// PodProbeStatuses are the results of the probes, an entry for each pod.
	// +optional
	// +listType=atomic
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`
	// Conditions: Delayed. Not part of OpenKruise's API.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionProbesDelayed is True while the exec probes of a node, or of the pods of a marker, run less often than their
// periods require, because the node has more of them than it can run.
const ConditionProbesDelayed = "Delayed"

// PodProbeStatus are the results of one pod.
type PodProbeStatus struct {
	// Name of the pod.
	// +required
	Name string `json:"name"`
	// Namespace of the pod.
	// +required
	Namespace string `json:"namespace"`
	// UID of the pod.
	// +required
	UID string `json:"uid"`
	// ProbeStates are the last results of the probes.
	// +optional
	// +listType=atomic
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ProbeState is the result of a probe of a container.
type ProbeState string

// States of a probe. Unknown means that there is no result yet for the current instance of the container.
const (
	ProbeSucceeded ProbeState = "Succeeded"
	ProbeFailed    ProbeState = "Failed"
	ProbeUnknown   ProbeState = "Unknown"
)

// ContainerProbeState is the result of one probe.
type ContainerProbeState struct {
	// Name of the probe, as in the spec.
	// +required
	Name string `json:"name"`
	// State is Succeeded, Failed or Unknown.
	// +required
	State ProbeState `json:"state"`
	// LastProbeTime is when the state or message was found. It is not updated while neither changes.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitzero"`
	// LastTransitionTime is when the state was first found.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Message is the output of the probe, at most 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}
