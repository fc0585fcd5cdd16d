package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequest asks for one or more containers of a running pod to be restarted in place.
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ContainerRecreateRequestSpec   `json:"spec,omitempty"`
	Status ContainerRecreateRequestStatus `json:"status,omitempty"`
}

// ContainerRecreateRequestList is a list of requests.
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}

// ContainerRecreateRequestSpec says which containers of which pod, and how. It cannot be changed.
type ContainerRecreateRequestSpec struct {
	// PodName is the pod in the namespace of the request.
	PodName string `json:"podName"`
	// Containers to restart, stopped one after another in this order.
	Containers []ContainerRecreateRequestContainer `json:"containers"`
	// Strategy says how to stop them and what counts as done.
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`
	// ActiveDeadlineSeconds bounds the whole request, counted from its creation; at least 3.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished deletes the request so many seconds after it finished. Unset keeps it.
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is one container. All but the name is filled in at admission from the pod.
type ContainerRecreateRequestContainer struct {
	Name string `json:"name"`
	// PreStop is copied from the pod at admission. Read-only.
	PreStop *ProbeHandler `json:"preStop,omitempty"`
	// Ports are copied from the pod at admission when PreStop needs a named port. Read-only.
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// StatusContext is the instance that ran at admission, the one to be replaced. Read-only.
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// ProbeHandler is the preStop hook of a container as the daemon runs it.
type ProbeHandler struct {
	Exec      *corev1.ExecAction      `json:"exec,omitempty"`
	HTTPGet   *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	// Sleep is honoured by refit-daemon; a kruise-daemon ignores it.
	Sleep *corev1.SleepAction `json:"sleep,omitempty"`
}

// ContainerRecreateRequestContainerContext is the instance of a container at admission.
type ContainerRecreateRequestContainerContext struct {
	// ContainerID in the form of ContainerStatus.ContainerID, "<runtime>://<id>".
	ContainerID  string `json:"containerID"`
	RestartCount int32  `json:"restartCount"`
}

// FailurePolicyType says what a container that cannot be stopped or restarted means for the rest.
type FailurePolicyType string

const (
	// FailurePolicyFail ends the request at the first container that fails.
	FailurePolicyFail FailurePolicyType = "Fail"
	// FailurePolicyIgnore goes on with the other containers.
	FailurePolicyIgnore FailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy says how to stop the containers and what counts as done.
type ContainerRecreateRequestStrategy struct {
	// FailurePolicy is Fail (default) or Ignore.
	FailurePolicy FailurePolicyType `json:"failurePolicy,omitempty"`
	// OrderedRecreate waits for each container to be recreated and ready before the next is stopped.
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// ForceRecreate restarts a container even when it has been restarted since admission.
	ForceRecreate bool `json:"forceRecreate,omitempty"`
	// TerminationGracePeriodSeconds between TERM and KILL; default the pod's; 0 kills at once.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// UnreadyGracePeriodSeconds marks the pod not ready and waits so long before the first stop.
	// It needs the pod to have the readiness gate KruisePodReady.
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// MinStartedSeconds a new container must have run before it counts as recreated.
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequestPhase of a request or of one of its containers.
type ContainerRecreateRequestPhase string

// A request ends as Completed; Succeeded and Failed are phases of containers. The outcome of a request
// is in its conditions Succeeded and Failed.
const (
	ContainerRecreateRequestPending    ContainerRecreateRequestPhase = "Pending"
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	ContainerRecreateRequestSucceeded  ContainerRecreateRequestPhase = "Succeeded"
	ContainerRecreateRequestFailed     ContainerRecreateRequestPhase = "Failed"
	ContainerRecreateRequestCompleted  ContainerRecreateRequestPhase = "Completed"
)

// ContainerRecreateRequestStatus is what happened so far.
type ContainerRecreateRequestStatus struct {
	Phase          ContainerRecreateRequestPhase `json:"phase"`
	CompletionTime *metav1.Time                  `json:"completionTime,omitempty"`
	// Message says in one sentence where the request stands or why it failed.
	Message                 string                                  `json:"message,omitempty"`
	ContainerRecreateStates []ContainerRecreateRequestRecreateState `json:"containerRecreateStates,omitempty"`
	// ContainerStatusSnapshot is written by the manager for a kruise-daemon, which cannot see pods' status.
	ContainerStatusSnapshot []ContainerStatusSnapshot `json:"containerStatusSnapshot,omitempty"`
	// Conditions: Accepted, Succeeded, Failed, and PreRecreateGrace of the manager.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateRequestRecreateState is where one container stands.
type ContainerRecreateRequestRecreateState struct {
	Name    string                        `json:"name"`
	Phase   ContainerRecreateRequestPhase `json:"phase"`
	Message string                        `json:"message,omitempty"`
	// IsKilled is set once the old instance has been stopped for this request.
	IsKilled bool `json:"isKilled,omitempty"`
	// ContainerID is the instance this request stops, recorded before it is stopped, so that a daemon
	// that dies in between never stops another one. Not part of OpenKruise's API.
	ContainerID string `json:"containerID,omitempty"`
}

// ContainerStatusSnapshot is one container's status as the manager saw it after its restart.
type ContainerStatusSnapshot struct {
	Name         string `json:"name"`
	Ready        bool   `json:"ready"`
	RestartCount int32  `json:"restartCount"`
	ContainerID  string `json:"containerID,omitempty"`
}
