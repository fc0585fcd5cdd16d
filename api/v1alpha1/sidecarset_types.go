package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// SidecarSet injects containers into pods when they are created, and updates those containers in running pods.
// It has the schema of v1beta1, so that the API server needs no conversion.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=`.status.matchedPods`
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedPods`
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyPods`
// +kubebuilder:printcolumn:name="UPDATED-READY",type=integer,JSONPath=`.status.updatedReadyPods`
// +kubebuilder:printcolumn:name="PROGRESSING",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="NOT-INJECTED",type=integer,JSONPath=`.status.notInjectedPods`,priority=1
// +kubebuilder:printcolumn:name="NOT-UPGRADABLE",type=integer,JSONPath=`.status.notUpgradablePods`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failedPods`
// +kubebuilder:printcolumn:name="REVISION",type=string,JSONPath=`.status.latestRevision`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-zA-Z0-9-]+$')",message="metadata.name must be at most 63 letters, digits and '-'"
type SidecarSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec v1beta1.SidecarSetSpec `json:"spec"`
	// +optional
	Status v1beta1.SidecarSetStatus `json:"status,omitzero"`
}

// SidecarSetList is a list of them.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SidecarSet `json:"items"`
}
