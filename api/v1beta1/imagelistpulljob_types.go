package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindImageListPullJob is the kind, for owner references and messages.
const KindImageListPullJob = "ImageListPullJob"

// ImageListPullJob pulls several images: it creates an ImagePullJob for each.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="ACTIVE",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="COMPLETED",type=integer,JSONPath=`.status.completed`
// +kubebuilder:printcolumn:name="SUCCEED",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="FAILED",type=string,JSONPath=`.status.failedImageStatuses[*].name`,description="The first image that a node could not pull"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="REASON",type=string,priority=1,JSONPath=`.status.failedImageStatuses[*].message`,description="Why that image could not be pulled"
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`
type ImageListPullJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ImageListPullJobSpec `json:"spec"`
	// +optional
	Status ImageListPullJobStatus `json:"status,omitzero"`
}

// ImageListPullJobList is a list of jobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImageListPullJob `json:"items"`
}

// ImageListPullJobSpec says which images are pulled, where and how.
type ImageListPullJobSpec struct {
	// Images as in containers, each given once.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(image, image.matches('^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@[a-z0-9]+:[0-9a-fA-F]{32,})?$'))",message="each image must be a reference as in a container: [registry/]repository[:tag][@digest]"
	Images               []string `json:"images"`
	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus counts ImagePullJobs.
type ImageListPullJobStatus struct {
	// StartTime is when the manager started the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Desired is the number of images.
	// +optional
	Desired int32 `json:"desired"`
	// Active is the number of ImagePullJobs that have not ended.
	// +optional
	Active int32 `json:"active"`
	// Completed is the number of ImagePullJobs that have ended.
	// +optional
	Completed int32 `json:"completed"`
	// Succeeded is the number of images that every selected node has.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// FailedImageStatuses are the images that a node could not pull.
	// +optional
	// +listType=atomic
	FailedImageStatuses []*FailedImageStatus `json:"failedImageStatuses,omitempty"`
	// Message says what prevents the list from creating an ImagePullJob. Not part of OpenKruise's API.
	// +optional
	Message string `json:"message,omitempty"`
	// Conditions: Complete and Failed. Not part of OpenKruise's API.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedImageStatus is an image that some node does not have.
type FailedImageStatus struct {
	// ImagePullJob by name.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Message says why the image could not be pulled.
	// +optional
	Message string `json:"message,omitempty"`
}
