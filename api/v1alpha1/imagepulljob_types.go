package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// ImagePullJob pulls an image on the nodes it selects, before a pod needs it.
// It has the schema of v1beta1, so that the API server needs no conversion.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="IMAGE",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="ACTIVE",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="SUCCEED",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`
type ImagePullJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec v1beta1.ImagePullJobSpec `json:"spec"`
	// +optional
	Status v1beta1.ImagePullJobStatus `json:"status,omitzero"`
}

// ImagePullJobList is a list of them.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImagePullJob `json:"items"`
}
