package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// ContainerRecreateRequest asks for one or more containers of a running pod to be restarted in place. Both versions have
// the same schema, so that the API server serves them without a conversion webhook. Clients of OpenKruise up to 1.9 do not
// know snapshot and conditions of the status; for them the manager writes annotations too.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=crr
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="RESULT",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
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
	Status v1beta1.ContainerRecreateRequestStatus `json:"status,omitzero"`
}

// ContainerRecreateRequestList is a list of requests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}

// ToV1beta1 returns a copy of the request in the version that Refit works with. The status is completed from the
// annotations by which clients of v1alpha1 exchange data (v1beta1.ReadHandOff).
func ToV1beta1(request *ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	request = request.DeepCopy()
	out := &v1beta1.ContainerRecreateRequest{ObjectMeta: request.ObjectMeta, Spec: request.Spec, Status: request.Status}
	v1beta1.ReadHandOff(out)
	return out
}
