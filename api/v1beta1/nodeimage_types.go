package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and resource of NodeImage.
const (
	KindNodeImage     = "NodeImage"
	ResourceNodeImage = "nodeimages"
)

// NodeImage lists the images that one node has to pull, and the state of each pull. It bears the node's name. The
// manager writes the spec, the node's daemon the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="PULLING",type=integer,JSONPath=`.status.pulling`
// +kubebuilder:printcolumn:name="SUCCEEDED",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeImage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NodeImageSpec `json:"spec,omitzero"`
	// +optional
	Status NodeImageStatus `json:"status,omitzero"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeImage `json:"items"`
}

// NodeImageSpec is what the node has to pull.
type NodeImageSpec struct {
	// Images by the name of their repository, as nginx or registry.example.com/team/app. At most 256.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is one repository with the tags or digests to pull of it.
type ImageSpec struct {
	// PullSecrets are Secrets of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. refit-daemon
	// reads those of its configured namespace only.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// +required
	// +listType=map
	// +listMapKey=tag
	// +kubebuilder:validation:MaxItems=256
	Tags []ImageTagSpec `json:"tags"`
	// SandboxConfig is passed to the runtime with each pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject names a Secret.
type ReferenceObject struct {
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ImageTagSpec is one pull.
type ImageTagSpec struct {
	// Tag, or a digest as sha256:<64 hex digits>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tag string `json:"tag"`
	// CreatedAt is when the pull was requested.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// OwnerReferences are the ImagePullJobs that request the pull.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`
	// Version is increased to have the pull done again.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImagePullPolicy is IfNotPresent (default) or Always.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullPolicy says whether an image that is on the node is pulled again.
//
// +kubebuilder:validation:Enum=IfNotPresent;Always;""
type ImagePullPolicy string

const (
	// PullIfNotPresent pulls only what the node does not have. The default.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
	// PullAlways asks the registry whether the tag has changed.
	PullAlways ImagePullPolicy = "Always"
)

// ImageTagPullPolicy bounds a pull.
type ImageTagPullPolicy struct {
	// TimeoutSeconds of one attempt; default 600.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// BackoffLimit is the number of retries after the first attempt; default 3. Negative: the default.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// TTLSecondsAfterFinished removes the entry so many seconds after the pull finished. Unset keeps it.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// ActiveDeadlineSeconds bounds all attempts together, from the start of the pull on the node.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// SandboxConfig is passed to the runtime as the pod sandbox that an image is pulled for.
type SandboxConfig struct {
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NodeImageStatus is the state of the node's pulls.
type NodeImageStatus struct {
	// Desired is the number of tags in the spec.
	// +optional
	Desired int32 `json:"desired"`
	// Succeeded is the number of images that were pulled.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed is the number of images that could not be pulled.
	// +optional
	Failed int32 `json:"failed"`
	// Pulling is the number of images that are being pulled.
	// +optional
	Pulling int32 `json:"pulling"`
	// Waiting is the number of tags that wait for a free slot or for the back-off after a failed attempt.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// ImageStatuses by the same names as spec.images.
	// +optional
	ImageStatuses map[string]ImageStatus `json:"imageStatuses,omitempty"`
	// FirstSyncStatus is part of OpenKruise's API. Nothing sets it.
	// +optional
	FirstSyncStatus *SyncStatus `json:"firstSyncStatus,omitempty"`
}

// ImageStatus is the state of the pulls of one repository.
type ImageStatus struct {
	// +required
	// +listType=atomic
	Tags []ImageTagStatus `json:"tags"`
}

// ImagePullPhase of one pull.
type ImagePullPhase string

const (
	// ImagePhaseWaiting is before the first attempt, and between attempts.
	ImagePhaseWaiting ImagePullPhase = "Waiting"
	// ImagePhasePulling is while the runtime pulls.
	ImagePhasePulling ImagePullPhase = "Pulling"
	// ImagePhaseSucceeded is final until the version changes.
	ImagePhaseSucceeded ImagePullPhase = "Succeeded"
	// ImagePhaseFailed is final until the version changes.
	ImagePhaseFailed ImagePullPhase = "Failed"
)

// ImageTagStatus is the state of one pull.
type ImageTagStatus struct {
	// +required
	Tag string `json:"tag"`
	// +required
	Phase ImagePullPhase `json:"phase"`
	// Progress in percent of the bytes; 0 or 100 where the runtime does not report bytes.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// StartTime is when the node began to pull the image.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the pull ended, whatever the outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Version of the spec that this is the state of.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImageID as "<repository>@<digest or ID>".
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Message says what is going on or why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
	// PulledBytes and TotalBytes of the compressed layers and manifests, where the runtime reports them. TotalBytes
	// grows until the manifest has been read. Not part of OpenKruise's API.
	// +optional
	PulledBytes int64 `json:"pulledBytes,omitempty"`
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
}

// SyncStatus is part of OpenKruise's API.
type SyncStatus struct {
	// +optional
	SyncAt *metav1.Time `json:"syncAt,omitempty"`
	// +optional
	Status string `json:"status,omitempty"`
	// Message says why the pull has failed or waits.
	// +optional
	Message string `json:"message,omitempty"`
}

// Labels and annotations of image pulls shared with OpenKruise.
const (
	// AnnotationPullingImageBy is set on the sandbox of every pull by a daemon; its value names the program.
	AnnotationPullingImageBy = "apps.kruise.io/pulling-image-by"
	// LabelFakeNodeImage on a NodeImage means that there is no such node: a test of OpenKruise. Such an object is
	// left alone.
	LabelFakeNodeImage = "apps.kruise.io/fake-nodeimage"
)

// LabelPullSecretCopyBy marks copies of pull secrets that refit-manager may remove; the value is its name.
const LabelPullSecretCopyBy = "refit.dev/pull-secret-copy-by" //nolint:gosec // the name of a label

// Defaults of a pull.
const (
	DefaultPullTimeoutSeconds = 600
	DefaultPullBackoffLimit   = 3
	// MaxNodeImages bounds spec.images of a NodeImage, MaxImageTags the tags of one of them, and MaxTagOwners the jobs of a tag.
	MaxNodeImages = 256
	MaxImageTags  = 256
	MaxTagOwners  = 1024
)
