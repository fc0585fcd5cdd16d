package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Readiness gate and annotations of a pod that is updated in place, shared with OpenKruise.
const (
	// ReadinessGateInPlaceUpdateReady is a readiness gate and a condition of a pod: False while the pod is updated in
	// place, so that its Services do not route to it. An update by Refit uses ReadinessGateKruisePodReady if the pod has
	// it.
	ReadinessGateInPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"
	// ReasonStartInPlaceUpdate is the reason of that condition while it is False.
	ReasonStartInPlaceUpdate = "StartInPlaceUpdate"

	// AnnotationInPlaceUpdateState holds an InPlaceUpdateState as JSON. Old pods of OpenKruise have it under the legacy
	// key.
	AnnotationInPlaceUpdateState       = "apps.kruise.io/inplace-update-state"
	LegacyAnnotationInPlaceUpdateState = "inplace-update-state"
	// AnnotationInPlaceUpdateGrace holds an InPlaceUpdateSpec as JSON. It is applied graceSeconds after the state's
	// updateTimestamp.
	AnnotationInPlaceUpdateGrace       = "apps.kruise.io/inplace-update-grace"
	LegacyAnnotationInPlaceUpdateGrace = "inplace-update-grace"
)

// Launch priority of containers, as OpenKruise's webhook injects it: this environment variable gets its value from the key
// "p_<priority>" of a ConfigMap. Containers with a higher priority start first.
const (
	EnvContainerBarrier     = "KRUISE_CONTAINER_BARRIER"
	ContainerBarrierKeyText = "p_"
)

// Environment variables that OpenKruise's SidecarSet sets from annotations; a change of them restarts nothing.
const (
	EnvSidecarSetVersion    = "SIDECARSET_VERSION"
	EnvSidecarSetVersionAlt = "SIDECARSET_VERSION_ALT"
)

// InPlaceUpdateState is the progress of an in-place update of a pod. The batches that have not begun are in the next
// fields; the batch that began last has already been written to the pod's spec and metadata.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateState struct {
	Revision        string      `json:"revision"`
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses are the previous statuses of the containers whose image has been changed.
	LastContainerStatuses    map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	UpdateEnvFromMetadata    bool                                    `json:"updateEnvFromMetadata,omitempty"`
	UpdateResources          bool                                    `json:"updateResources,omitempty"`
	UpdateImages             bool                                    `json:"updateImages,omitempty"`
	NextContainerImages      map[string]string                       `json:"nextContainerImages,omitempty"`
	NextContainerRefMetadata map[string]InPlaceUpdateMetadata        `json:"nextContainerRefMetadata,omitempty"`
	NextContainerResources   map[string]corev1.ResourceRequirements  `json:"nextContainerResources,omitempty"`
	PreCheckBeforeNext       *InPlaceUpdatePreCheckBeforeNext        `json:"preCheckBeforeNext,omitempty"`
	ContainerBatchesRecord   []InPlaceUpdateContainerBatch           `json:"containerBatchesRecord,omitempty"`
	// Refit is written and read by Refit only. OpenKruise ignores it.
	Refit *InPlaceUpdateExtension `json:"refit,omitempty"`
}

// InPlaceUpdateMetadata has the labels and annotations that a container's environment refers to.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// InPlaceUpdateContainerStatus is the status of a container before its image was changed.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerStatus struct {
	ImageID string `json:"imageID,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is the precondition of the next batch.
//
// +kubebuilder:object:generate=false
type InPlaceUpdatePreCheckBeforeNext struct {
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is a batch that has begun.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerBatch struct {
	Timestamp  metav1.Time `json:"timestamp"`
	Containers []string    `json:"containers"`
}

// InPlaceUpdateExtension has the state of an update that is not in OpenKruise's fields.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateExtension struct {
	// Instances are the container instances that the batches so far replace, by the container's name.
	Instances map[string]InPlaceUpdateInstance `json:"instances,omitempty"`
	// Order is the launch order of the containers, a batch each; empty for the order of the pod's launch priority.
	Order [][]string `json:"order,omitempty"`
	// DrainSeconds is how long the pod is not ready before its first container is stopped.
	DrainSeconds int32 `json:"drainSeconds,omitempty"`
	// After lists, for containers whose change has not been written yet, the containers that have to be ready first.
	After map[string][]string `json:"after,omitempty"`
	// Labels and Annotations are changes of the pod's metadata that have not been written yet; null removes a key.
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Written is when the last batch was written to the pod. The batch's own timestamp is in whole seconds.
	Written *metav1.MicroTime `json:"written,omitempty"`
	// Opened is when the pod was added to its Services again, with all its containers ready.
	Opened *metav1.Time `json:"opened,omitempty"`
	// Unready is set if the pod was not ready when the update began.
	Unready *InPlaceUpdateUnready `json:"unready,omitempty"`
}

// InPlaceUpdateUnready describes a pod that was not ready.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateUnready struct {
	// Since is the lastTransitionTime of the pod's condition Ready: while it is the same, the pod has not been ready.
	Since metav1.Time `json:"since"`
	// Stuck means that the pod could not become ready by itself.
	Stuck bool `json:"stuck,omitempty"`
	// Updated means that a previous update has, or may have, caused it. The pod counts as being updated until it is ready,
	// even if another update has superseded that one.
	Updated bool `json:"updated,omitempty"`
}

// InPlaceUpdateInstance is a container instance that has to be replaced.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateInstance struct {
	ContainerID string `json:"containerID,omitempty"`
	// Image is the image in the spec from which the instance was created.
	Image string `json:"image,omitempty"`
	// Superseded are images that were in the spec after that and before the present one: kubelet may create the next
	// instance from one of them, and replace it again. At most four, the newest last.
	Superseded []string `json:"superseded,omitempty"`
}

// InPlaceUpdateSpec is an update as OpenKruise stores it while the pod drains.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateSpec struct {
	Revision              string                                 `json:"revision"`
	ContainerImages       map[string]string                      `json:"containerImages,omitempty"`
	ContainerRefMetadata  map[string]InPlaceUpdateMetadata       `json:"containerRefMetadata,omitempty"`
	ContainerResources    map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	MetaDataPatch         []byte                                 `json:"metaDataPatch,omitempty"` // a strategic merge patch of a Pod
	UpdateEnvFromMetadata bool                                   `json:"updateEnvFromMetadata,omitempty"`
	GraceSeconds          int32                                  `json:"graceSeconds,omitempty"`
}
