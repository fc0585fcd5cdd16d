package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequest asks for one or more containers of a running pod to be restarted in place.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
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
	Spec ContainerRecreateRequestSpec `json:"spec"`
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

// ContainerRecreateRequestSpec selects the pod and the containers to restart. It cannot be changed.
//
// Containers are a list by key, so that a second server-side apply keeps what admission has filled in. Equality of such
// lists ignores the order, which matters here and has a rule of its own.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec of a ContainerRecreateRequest cannot be changed; create another request"
// +kubebuilder:validation:XValidation:rule="self.containers.map(c, c.name) == oldSelf.containers.map(c, c.name)",message="spec.containers of a ContainerRecreateRequest cannot be changed, not even their order; create another request"
type ContainerRecreateRequestSpec struct {
	// PodName is the pod in the namespace of the request.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName"`
	// Containers to restart, stopped one after another in this order. At most 256.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Containers []ContainerRecreateRequestContainer `json:"containers"`
	// Strategy says how to stop the containers and when they count as recreated.
	// +optional
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`
	// ActiveDeadlineSeconds bounds the whole request, counted from its creation; at least 3.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished deletes the request this many seconds after it finished. Unset keeps it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is one container. All fields except the name are filled in at admission from the pod.
//
// No validation rule of the CRD can refuse the read-only fields on create, because rules are evaluated after the mutating
// webhook has filled them in. The webhook refuses them in the object that the user sent.
type ContainerRecreateRequestContainer struct {
	// Name of a container of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// PreStop is copied from the pod at admission. Read-only.
	// +optional
	PreStop *ProbeHandler `json:"preStop,omitempty"`
	// Ports are copied from the pod at admission when PreStop needs a named port. Read-only.
	// +optional
	// +listType=atomic
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// StatusContext is the instance that ran at admission, which is to be replaced. Read-only.
	// +optional
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// ProbeHandler is the preStop hook of a container as the daemon runs it.
type ProbeHandler struct {
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`
	// +optional
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// +optional
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	// Sleep is supported by refit-daemon; a kruise-daemon ignores it.
	// +optional
	Sleep *corev1.SleepAction `json:"sleep,omitempty"`
}

// ContainerRecreateRequestContainerContext is the instance of a container at admission.
type ContainerRecreateRequestContainerContext struct {
	// ContainerID in the form of ContainerStatus.ContainerID, "<runtime>://<id>".
	// +required
	// +kubebuilder:validation:MaxLength=512
	ContainerID string `json:"containerID"`
	// RestartCount is the restart count of the container when the request was admitted.
	// +required
	RestartCount int32 `json:"restartCount"`
}

// FailurePolicyType says what happens to the other containers when one cannot be stopped or restarted.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicyType string

const (
	// FailurePolicyFail ends the request at the first container that fails.
	FailurePolicyFail FailurePolicyType = "Fail"
	// FailurePolicyIgnore continues with the other containers.
	FailurePolicyIgnore FailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy says how to stop the containers and when they count as recreated.
type ContainerRecreateRequestStrategy struct {
	// FailurePolicy is Fail (default) or Ignore.
	// +optional
	FailurePolicy FailurePolicyType `json:"failurePolicy,omitempty"`
	// OrderedRecreate waits for each container to be recreated and ready before the next one is stopped.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// ForceRecreate restarts a container even if it has been restarted since admission.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`
	// TerminationGracePeriodSeconds is the time between TERM and KILL; default is the pod's; 0 kills at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// UnreadyGracePeriodSeconds marks the pod not ready and waits this many seconds before the first stop. It needs the
	// readiness gate KruisePodReady in the pod.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// MinStartedSeconds is how long a new container must have run before it counts as recreated.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequestPhase of a request or of one of its containers.
//
// +kubebuilder:validation:Enum=Pending;Recreating;Succeeded;Failed;Completed
type ContainerRecreateRequestPhase string

// A request ends as Completed; Succeeded and Failed are phases of containers. The outcome of a request is in its conditions
// Succeeded and Failed.
const (
	ContainerRecreateRequestPending    ContainerRecreateRequestPhase = "Pending"
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	ContainerRecreateRequestSucceeded  ContainerRecreateRequestPhase = "Succeeded"
	ContainerRecreateRequestFailed     ContainerRecreateRequestPhase = "Failed"
	ContainerRecreateRequestCompleted  ContainerRecreateRequestPhase = "Completed"
)

// ContainerRecreateRequestStatus is the progress of a request.
type ContainerRecreateRequestStatus struct {
	// Phase is empty until a daemon has accepted the request, and Completed at the end.
	// +optional
	Phase ContainerRecreateRequestPhase `json:"phase,omitempty"`
	// CompletionTime is when the request ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Message is a sentence about the progress of the request, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// ContainerRecreateStates are the progress of the restart of each container.
	// +optional
	// +listType=atomic
	ContainerRecreateStates []ContainerRecreateRequestRecreateState `json:"containerRecreateStates,omitempty"`
	// ContainerStatusSnapshot is written by the manager for a kruise-daemon, which cannot read pods' status.
	// +optional
	// +listType=atomic
	ContainerStatusSnapshot []ContainerStatusSnapshot `json:"containerStatusSnapshot,omitempty"`
	// Conditions: Accepted, Succeeded, Failed, and PreRecreateGrace of the manager.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateRequestRecreateState is the progress of one container.
type ContainerRecreateRequestRecreateState struct {
	// Name of the container.
	// +required
	Name string `json:"name"`
	// +required
	Phase ContainerRecreateRequestPhase `json:"phase"`
	// Message says what the container waits for, or why its restart has failed.
	// +optional
	Message string `json:"message,omitempty"`
	// IsKilled is set once the old instance has been stopped for this request.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
	// ContainerID is the instance that this request stops. It is recorded before the stop, so that a daemon that is killed
	// in between never stops another one. Not part of OpenKruise's API.
	ContainerID string `json:"containerID,omitempty"`
	// StopBegan is when the stop of ContainerID began, including its preStop hook, by the API server's clock. It is
	// recorded before the stop, so that a daemon that continues the stop leaves the container the rest of its grace period.
	// Not part of OpenKruise's API.
	// +optional
	StopBegan *metav1.MicroTime `json:"stopBegan,omitempty"`
}

// ContainerStatusSnapshot is one container's status as the manager read it after its restart.
type ContainerStatusSnapshot struct {
	// Name of the container.
	// +required
	Name string `json:"name"`
	// Ready says whether the container was ready.
	// +required
	Ready bool `json:"ready"`
	// RestartCount is the restart count of the container.
	// +required
	RestartCount int32 `json:"restartCount"`
	// ContainerID is the ID of the container, as containerd://ID.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
}
