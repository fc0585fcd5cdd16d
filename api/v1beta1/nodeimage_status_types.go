package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	// Tags are the states of the pulls, by tag.
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
	// Tag of the image, or its digest.
	// +required
	Tag string `json:"tag"`
	// +required
	Phase ImagePullPhase `json:"phase"`
	// Progress in percent of the bytes; 0 or 100 if the runtime does not report bytes.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// StartTime is when the node began to pull the image.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the pull ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Version of the spec that this state belongs to.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImageID as "<repository>@<digest or ID>".
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Message describes the progress, or why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
	// PulledBytes and TotalBytes of the compressed layers and manifests, if the runtime reports them. TotalBytes grows
	// until the manifest has been read. Not part of OpenKruise's API.
	// +optional
	PulledBytes int64 `json:"pulledBytes,omitempty"`
	// TotalBytes is the compressed size of the layers to pull, in bytes.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// Namespaces have the state for each namespace whose jobs request the pull; phase and message above are their summary.
	// Not part of OpenKruise's API.
	// +optional
	// +listType=atomic
	Namespaces []ImageNamespaceStatus `json:"namespaces,omitempty"`
}

// ImageNamespaceStatus is the state of the pull of a tag for the jobs of one namespace.
type ImageNamespaceStatus struct {
	// Namespace for which the image is pulled.
	// +required
	Namespace string `json:"namespace"`
	// +required
	Phase ImagePullPhase `json:"phase"`
	// Version of the spec that this state belongs to.
	// +optional
	Version int64 `json:"version,omitempty"`
	// StartTime is when the pull began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the pull ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Message describes the progress, or why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
	// WithSecret means that the image was pulled with a Secret of the namespace. Other namespaces cannot rely on it.
	// +optional
	WithSecret bool `json:"withSecret,omitempty"`
	// Jobs are outcomes of earlier versions, for jobs that requested these.
	// +optional
	// +listType=atomic
	Jobs []ImageJobStatus `json:"jobs,omitempty"`
}

// ImageJobStatus is the outcome of a pull for one job.
type ImageJobStatus struct {
	// UID of the ImagePullJob.
	// +required
	UID types.UID `json:"uid"`
	// Version that had this outcome.
	// +optional
	Version int64 `json:"version,omitempty"`
	// Phase is Succeeded or Failed.
	// +required
	Phase ImagePullPhase `json:"phase"`
	// Message says why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatus is part of OpenKruise's API.
type SyncStatus struct {
	// SyncAt is the time of the first synchronization. Refit does not write it.
	// +optional
	SyncAt *metav1.Time `json:"syncAt,omitempty"`
	// Status is the result of the first synchronization. Refit does not write it.
	// +optional
	Status string `json:"status,omitempty"`
	// Message says why the pull has failed or waits.
	// +optional
	Message string `json:"message,omitempty"`
}
