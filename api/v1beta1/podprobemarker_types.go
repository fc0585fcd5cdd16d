package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarker runs probes of the pods it selects on their nodes, and marks the pods with the results: a condition, and
// labels and annotations by state. It never restarts a container or makes a pod not ready.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
	Spec PodProbeMarkerSpec `json:"spec"`
	// +optional
	Status PodProbeMarkerStatus `json:"status,omitzero"`
}

// PodProbeMarkerList is a list of markers.
//
// +kubebuilder:object:root=true
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodProbeMarker `json:"items"`
}

// PodProbeMarkerSpec says which pods are probed, and how.
type PodProbeMarkerSpec struct {
	// Selector of pods in the marker's namespace. It cannot be changed.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector cannot be changed; create another PodProbeMarker"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="selector must not be empty: it would select every pod of the namespace"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",fieldPath=".matchExpressions",message="operator must be one of In, NotIn, Exists and DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !(e.operator in ['In', 'NotIn']) || (has(e.values) && size(e.values) > 0))",fieldPath=".matchExpressions",message="operators In and NotIn need values"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !(e.operator in ['Exists', 'DoesNotExist']) || !has(e.values) || size(e.values) == 0)",fieldPath=".matchExpressions",message="operators Exists and DoesNotExist take no values"
	Selector *metav1.LabelSelector `json:"selector"`
	// Probes of the pods' containers; at most 100.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.podConditionType) || a.podConditionType == '' || self.exists_one(b, has(b.podConditionType) && b.podConditionType == a.podConditionType))",message="each podConditionType may be given only once"
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe of one container, and how the pod is marked with its result.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podConditionType) && size(self.podConditionType) > 0) || (has(self.markerPolicy) && size(self.markerPolicy) > 0)",message="podConditionType or markerPolicy must be given: the result would go nowhere"
type PodContainerProbe struct {
	// Name is unique among the marker's probes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="name must not contain '#', which separates it from the marker's name"
	Name string `json:"name"`
	// ContainerName of the pods. The condition Ready names pods without such a container.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="containerName must be the name of a container: lower case letters, digits and '-'"
	ContainerName string `json:"containerName"`
	// Probe as in a pod. By default it runs once a second with a timeout of one second, and one result is enough.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.initialDelaySeconds) || (self.initialDelaySeconds >= 0 && self.initialDelaySeconds <= 86400)",fieldPath=".initialDelaySeconds",message="initialDelaySeconds must be between 0 and 86400"
	// +kubebuilder:validation:XValidation:rule="!has(self.timeoutSeconds) || (self.timeoutSeconds >= 0 && self.timeoutSeconds <= 3600)",fieldPath=".timeoutSeconds",message="timeoutSeconds must be between 0 and 3600"
	// +kubebuilder:validation:XValidation:rule="!has(self.periodSeconds) || (self.periodSeconds >= 0 && self.periodSeconds <= 86400)",fieldPath=".periodSeconds",message="periodSeconds must be between 0 and 86400"
	// +kubebuilder:validation:XValidation:rule="!has(self.successThreshold) || (self.successThreshold >= 0 && self.successThreshold <= 1000)",fieldPath=".successThreshold",message="successThreshold must be between 0 and 1000"
	// +kubebuilder:validation:XValidation:rule="!has(self.failureThreshold) || (self.failureThreshold >= 0 && self.failureThreshold <= 1000)",fieldPath=".failureThreshold",message="failureThreshold must be between 0 and 1000"
	Probe ContainerProbeSpec `json:"probe"`
	// MarkerPolicy says which labels and annotations the pod gets in which state.
	//
	// +optional
	// +listType=map
	// +listMapKey=state
	// +kubebuilder:validation:MaxItems=2
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`
	// PodConditionType is the condition of the pod that shows the result: True if the probe has succeeded, False
	// otherwise. Types that kubelet and controllers write are refused.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!(self in ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady', 'KruisePodReady', 'InPlaceUpdateReady', 'PodReadyToStartContainers', 'PodHasNetwork', 'DisruptionTarget', 'PodResizePending', 'PodResizeInProgress', 'AllContainersRestarting', 'SidecarTerminated', 'SidecarSetUpgradable'])",message="podConditionType is written by kubelet or a controller; choose a type of your own, as example.com/idle"
	// +kubebuilder:validation:XValidation:rule="self == '' || (self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253)",message="podConditionType must look like a label's key, as example.com/idle"
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is a probe of Kubernetes with additional rules: a user who may write probes must not be able to make a
// node connect to anything but the pod.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exec) ? 1 : 0) + (has(self.httpGet) ? 1 : 0) + (has(self.tcpSocket) ? 1 : 0) + (has(self.grpc) ? 1 : 0) == 1",message="exactly one of exec, httpGet, tcpSocket and grpc must be given"
// +kubebuilder:validation:XValidation:rule="!has(self.exec) || (has(self.exec.command) && size(self.exec.command) > 0)",fieldPath=".exec.command",message="command must be given"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.host) || size(self.httpGet.host) == 0",fieldPath=".httpGet.host",message="host is not allowed: only the pod itself can be probed"
// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || !has(self.tcpSocket.host) || size(self.tcpSocket.host) == 0",fieldPath=".tcpSocket.host",message="host is not allowed: only the pod itself can be probed"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || (type(self.httpGet.port) == int ? self.httpGet.port >= 1 && self.httpGet.port <= 65535 : size(self.httpGet.port) >= 1 && size(self.httpGet.port) <= 15)",fieldPath=".httpGet.port",message="port must be a number between 1 and 65535, or the name of a port of the container"
// +kubebuilder:validation:XValidation:rule="!has(self.tcpSocket) || (type(self.tcpSocket.port) == int ? self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535 : size(self.tcpSocket.port) >= 1 && size(self.tcpSocket.port) <= 15)",fieldPath=".tcpSocket.port",message="port must be a number between 1 and 65535, or the name of a port of the container"
// +kubebuilder:validation:XValidation:rule="!has(self.grpc) || (self.grpc.port >= 1 && self.grpc.port <= 65535)",fieldPath=".grpc.port",message="port must be a number between 1 and 65535"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.scheme) || size(self.httpGet.scheme) == 0 || self.httpGet.scheme in ['HTTP', 'HTTPS']",fieldPath=".httpGet.scheme",message="scheme must be HTTP, which is the default, or HTTPS"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.path) || size(self.httpGet.path) <= 2048",fieldPath=".httpGet.path",message="path must be at most 2048 characters long"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || !has(self.httpGet.httpHeaders) || size(self.httpGet.httpHeaders) <= 32",fieldPath=".httpGet.httpHeaders",message="at most 32 headers can be given"
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeMarkerPolicy has the labels and annotations of a pod in one state of a probe. When the state changes, Refit removes
// what it has set for the other state.
//
// +kubebuilder:validation:XValidation:rule="(has(self.labels) && size(self.labels) > 0) || (has(self.annotations) && size(self.annotations) > 0)",message="labels or annotations must be given"
type ProbeMarkerPolicy struct {
	// State is Succeeded or Failed.
	//
	// +required
	// +kubebuilder:validation:Enum=Succeeded;Failed
	State ProbeState `json:"state"`
	// Labels that the pod gets in this state.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that the pod gets in this state.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodProbeMarkerStatus is the status of a marker.
type PodProbeMarkerStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MatchedPods is the number of pods that are selected, have been initialized, and have not ended.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`
	// Conditions: Ready. Not part of OpenKruise's API.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KindPodProbeMarker is the kind, for owner references and messages.
const KindPodProbeMarker = "PodProbeMarker"

const (
	// ConditionPodProbeMarkerReady is True when all probes of the marker can run in all pods that it matches.
	ConditionPodProbeMarkerReady = "Ready"
	// FinalizerNodePodProbeCleanup is added to markers by the manager, and removed when no NodePodProbe names the marker
	// any more. OpenKruise uses the same one.
	FinalizerNodePodProbeCleanup = "kruise.io/node-pod-probe-cleanup"
	// MaxProbesOfNode is the maximum number of probes of a node, which its daemon runs.
	MaxProbesOfNode = 3000
	// MaxProbesOfMarker is the maximum number of probes of a marker.
	MaxProbesOfMarker = 100
	// MaxProbesOfPod is the maximum number of probes of a pod by all its markers, as in NodePodProbe's schema.
	MaxProbesOfPod = 256
)

// The serverless protocol: on virtual nodes, where no daemon runs, annotations of a pod list its probes, and the sidecar in
// the pod writes the conditions.
const (
	// AnnotationOverridden on a pod names the labels and annotations of markers that others have changed since, with hashes
	// of the replaced values. Refit does not change them until the marker wants another value.
	AnnotationOverridden = "refit.dev/podprobe-overridden"
	// AnnotationPodProbe holds the probes with a podConditionType as a JSON array of
	// {name, containerName, podConditionType, probe}.
	AnnotationPodProbe = "kruise.io/podprobe"
	// AnnotationPodProbeMarkerList holds the names of the markers of these probes, separated by commas.
	AnnotationPodProbeMarkerList = "kruise.io/podprobemarker-list"
	// LabelNodeType of a node is NodeTypeVirtual for a virtual node. They are the names of OpenKruise for LabelType.
	LabelNodeType   = LabelType
	NodeTypeVirtual = TypeVirtualKubelet
)
