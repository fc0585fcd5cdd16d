package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// ContainerRecreateRequest asks for one or more containers of a running pod to be restarted in place.
// Its spec is that of v1beta1; its status has neither snapshot nor conditions, which are shown as annotations.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crr
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="POD",type=string,JSONPath=`.spec.podName`
// +kubebuilder:printcolumn:name="NODE",type=string,JSONPath=`.metadata.labels.crr\.apps\.kruise\.io/node-name`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`
type ContainerRecreateRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec v1beta1.ContainerRecreateRequestSpec `json:"spec"`
	// +optional
	Status ContainerRecreateRequestStatus `json:"status,omitzero"`
}

// ContainerRecreateRequestList is a list of requests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}

// ContainerRecreateRequestStatus is what happened so far.
type ContainerRecreateRequestStatus struct {
	// Phase is empty until a daemon has seen the request, and ends as Completed.
	// +optional
	Phase v1beta1.ContainerRecreateRequestPhase `json:"phase,omitempty"`
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Message says in one sentence where the request stands or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	// +listType=atomic
	ContainerRecreateStates []v1beta1.ContainerRecreateRequestRecreateState `json:"containerRecreateStates,omitempty"`
}
