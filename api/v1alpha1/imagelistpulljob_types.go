package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// ImageListPullJob pulls several images: it creates an ImagePullJob for each.
// It has the schema of v1beta1, so that the API server needs no conversion.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
	Spec v1beta1.ImageListPullJobSpec `json:"spec"`
	// +optional
	Status v1beta1.ImageListPullJobStatus `json:"status,omitzero"`
}

// ImageListPullJobList is a list of them.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImageListPullJob `json:"items"`
}
