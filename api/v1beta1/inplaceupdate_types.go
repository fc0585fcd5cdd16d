package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Readiness gate and annotations of a pod that is updated in place, shared with OpenKruise.
const (
	// ReadinessGateInPlaceUpdateReady is a readiness gate and a condition of a pod: False while the pod is updated in
	// place, so that its Services send it nothing. An update of Refit's uses ReadinessGateKruisePodReady if the pod has it.
	ReadinessGateInPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"
	// ReasonStartInPlaceUpdate is the reason of that condition while it is False.
	ReasonStartInPlaceUpdate = "StartInPlaceUpdate"

	// AnnotationInPlaceUpdateState holds an InPlaceUpdateState as JSON. Old pods of OpenKruise have it under the legacy key.
	AnnotationInPlaceUpdateState       = "apps.kruise.io/inplace-update-state"
	LegacyAnnotationInPlaceUpdateState = "inplace-update-state"
	// AnnotationInPlaceUpdateGrace holds an InPlaceUpdateSpec as JSON, which is to be applied when graceSeconds have passed
	// since the state's updateTimestamp.
	AnnotationInPlaceUpdateGrace       = "apps.kruise.io/inplace-update-grace"
	LegacyAnnotationInPlaceUpdateGrace = "inplace-update-grace"
)

// Launch priority of containers, as OpenKruise's webhook injects it: this environment variable takes its value from the
// key "p_<priority>" of a ConfigMap. Containers of higher priority start first.
const (
	EnvContainerBarrier     = "KRUISE_CONTAINER_BARRIER"
	ContainerBarrierKeyText = "p_"
)

// Environment variables that OpenKruise's SidecarSet sets from annotations; a change of them restarts nothing.
const (
	EnvSidecarSetVersion    = "SIDECARSET_VERSION"
	EnvSidecarSetVersionAlt = "SIDECARSET_VERSION_ALT"
)

// InPlaceUpdateState is how far an in-place update of a pod has come. The batches that have not been begun are in the
// next fields; the batch that was begun last has been written to the pod's spec and metadata already.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateState struct {
	Revision        string      `json:"revision"`
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses is what the containers whose image has been changed ran before.
	LastContainerStatuses    map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	UpdateEnvFromMetadata    bool                                    `json:"updateEnvFromMetadata,omitempty"`
	UpdateResources          bool                                    `json:"updateResources,omitempty"`
	UpdateImages             bool                                    `json:"updateImages,omitempty"`
	NextContainerImages      map[string]string                       `json:"nextContainerImages,omitempty"`
	NextContainerRefMetadata map[string]InPlaceUpdateMetadata        `json:"nextContainerRefMetadata,omitempty"`
	NextContainerResources   map[string]corev1.ResourceRequirements  `json:"nextContainerResources,omitempty"`
	PreCheckBeforeNext       *InPlaceUpdatePreCheckBeforeNext        `json:"preCheckBeforeNext,omitempty"`
	ContainerBatchesRecord   []InPlaceUpdateContainerBatch           `json:"containerBatchesRecord,omitempty"`
	// Refit is what only Refit writes and reads. OpenKruise ignores it.
	Refit *InPlaceUpdateExtension `json:"refit,omitempty"`
}

// InPlaceUpdateMetadata is the labels and annotations that a container's environment refers to.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// InPlaceUpdateContainerStatus is what a container ran before its image was changed.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerStatus struct {
	ImageID string `json:"imageID,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is what has to hold before the next batch.
//
// +kubebuilder:object:generate=false
type InPlaceUpdatePreCheckBeforeNext struct {
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is a batch that has been begun.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerBatch struct {
	Timestamp  metav1.Time `json:"timestamp"`
	Containers []string    `json:"containers"`
}

// InPlaceUpdateExtension is what Refit keeps of an update beyond OpenKruise's fields.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateExtension struct {
	// Instances are the container instances that the begun batches replace, by the container's name.
	Instances map[string]InPlaceUpdateInstance `json:"instances,omitempty"`
	// Order is the launch order of the containers, a batch each; empty for the order of the pod's launch priority.
	Order [][]string `json:"order,omitempty"`
	// DrainSeconds is how long the pod is not ready before its first container is stopped.
	DrainSeconds int32 `json:"drainSeconds,omitempty"`
	// After has, for containers whose change is still to be written, the containers that have to be ready before that.
	After map[string][]string `json:"after,omitempty"`
	// Labels and Annotations are changes of the pod's metadata that are still to be written; null removes a key.
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Written is when the last batch was written to the pod: the batch's own timestamp has whole seconds.
	Written *metav1.MicroTime `json:"written,omitempty"`
	// Opened is when the pod was put back into its Services with all its containers ready.
	Opened *metav1.Time `json:"opened,omitempty"`
	// Unready is set if the pod was not ready when the update was begun, for another reason than the update before it.
	Unready *InPlaceUpdateUnready `json:"unready,omitempty"`
}

// InPlaceUpdateUnready is what was known of a pod that was not ready.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateUnready struct {
	// Since is the lastTransitionTime of the pod's condition Ready: as long as that is the same, the pod has not been ready since.
	Since metav1.Time `json:"since"`
	// Stuck says that it could not become ready by itself.
	Stuck bool `json:"stuck,omitempty"`
}

// InPlaceUpdateInstance is a container instance that is to be replaced.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateInstance struct {
	ContainerID string `json:"containerID,omitempty"`
	// Image is the one in the spec that the instance was made from.
	Image string `json:"image,omitempty"`
}

// InPlaceUpdateSpec is an update as OpenKruise keeps it while the pod drains.
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
