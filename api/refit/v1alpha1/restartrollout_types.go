package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kind and Resource of RestartRollout, for a dynamic client or a RESTMapper.
const (
	KindRestartRollout     = "RestartRollout"
	ResourceRestartRollout = "restartrollouts"
)

// LabelRestartRollout is on every ContainerRecreateRequest of a rollout, with the UID of the rollout.
const LabelRestartRollout = "refit.dev/restart-rollout"

// AnnotationTrigger is on RestartRollouts that refit-manager has created, with the cause: KIND/NAME of a RestartSchedule,
// or of a ConfigMap or Secret that has changed.
const AnnotationTrigger = "refit.dev/trigger"

// AnnotationOldestFirst set to "true" makes a RestartRollout begin with the pods whose containers have run for the longest
// time, instead of in the order of names. A RestartSchedule sets it if the previous rollout has not succeeded, so that the
// last pods are reached too.
const AnnotationOldestFirst = "refit.dev/oldest-first"

// RestartRollout restarts containers of many pods in place, a few pods at a time: the pods of a workload, or the pods that
// a selector matches. A pod that is created after the rollout is left out, since its containers are new.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rr
// +kubebuilder:printcolumn:name="PODS",type=integer,JSONPath=`.status.pods`
// +kubebuilder:printcolumn:name="RESTARTED",type=integer,JSONPath=`.status.restarted`
// +kubebuilder:printcolumn:name="RESTARTING",type=integer,JSONPath=`.status.restarting`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="metadata.name must be at most 200 characters, since the names of its ContainerRecreateRequests are made from it"
type RestartRollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.targetRef) == has(oldSelf.targetRef) && (!has(self.targetRef) || self.targetRef == oldSelf.targetRef)",fieldPath=".targetRef",message="targetRef cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && (!has(self.selector) || self.selector == oldSelf.selector)",fieldPath=".selector",message="selector cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="self.containers == oldSelf.containers",fieldPath=".containers",message="containers cannot be changed; create another RestartRollout"
	Spec RestartRolloutSpec `json:"spec"`
	// +optional
	Status RestartRolloutStatus `json:"status,omitzero"`
}

// RestartRolloutList is a list of rollouts.
//
// +kubebuilder:object:root=true
type RestartRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RestartRollout `json:"items"`
}

// RestartRolloutSpec selects the pods and the containers to restart, and limits how fast they are restarted. Only paused,
// partition and maxUnavailable can be changed.
//
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) != has(self.selector)",message="exactly one of targetRef and selector must be set"
type RestartRolloutSpec struct {
	// TargetRef is a workload of the same namespace whose pods are restarted.
	// +optional
	TargetRef *WorkloadReference `json:"targetRef,omitempty"`
	// Selector of pods of the same namespace. An empty selector matches no pod.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Containers to restart in each pod, stopped one after another in this order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(d, d == c))",message="a container must be listed once"
	Containers []string `json:"containers"`
	// MaxUnavailable is how many of the pods may be unavailable at a time, as a number or a percentage of the pods,
	// rounded down and at least 1; default 1. Pods that are unavailable for other reasons count.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 && int(self) <= 2147483647 : string(self).matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number of at least 1 or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Partition is the number of pods that are not restarted; default 0. Lower it to continue.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Partition int32 `json:"partition,omitempty"`
	// MinReadySeconds is how long a pod must be ready after its restart to count as available.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// Paused starts no further restarts. Restarts that have started continue.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// FailurePolicy says what happens to the other pods when the restart of a pod has failed; default Stop.
	// +optional
	FailurePolicy RolloutFailurePolicy `json:"failurePolicy,omitempty"`
	// IgnorePodDisruptionBudgets restarts pods although a PodDisruptionBudget allows no disruption.
	// +optional
	IgnorePodDisruptionBudgets bool `json:"ignorePodDisruptionBudgets,omitempty"`
	// ActiveDeadlineSeconds is how long after its creation the rollout starts restarts. It then ends as failed, when the
	// restarts in progress have ended.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ProgressDeadlineSeconds is the time without a restarted pod after which the condition Progressing becomes False; the
	// rollout continues. Default 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished deletes the rollout and its ContainerRecreateRequests this many seconds after its end. Unset
	// keeps them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// Request says how each pod is restarted.
	// +optional
	Request RestartRequestTemplate `json:"request,omitzero"`
}

// WorkloadReference names a workload: Deployment, ReplicaSet, StatefulSet or DaemonSet of apps/v1, or a kind of
// apps.kruise.io that controls its pods itself, such as CloneSet.
//
// +kubebuilder:validation:XValidation:rule="self.apiVersion == 'apps/v1' ? self.kind in ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet'] : self.kind in ['CloneSet', 'StatefulSet', 'DaemonSet']",message="must be a Deployment, ReplicaSet, StatefulSet or DaemonSet of apps/v1, or a CloneSet, StatefulSet or DaemonSet of apps.kruise.io"
type WorkloadReference struct {
	// APIVersion, such as apps/v1.
	// +required
	// +kubebuilder:validation:Pattern=`^(apps/v1|apps\.kruise\.io/v1(alpha1|beta1))$`
	APIVersion string `json:"apiVersion"`
	// Kind, such as Deployment.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RestartRequestTemplate has the fields of the strategy of a ContainerRecreateRequest that apply to each pod.
type RestartRequestTemplate struct {
	// TerminationGracePeriodSeconds is the time between TERM and KILL; default is the pod's; 0 kills at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// UnreadyGracePeriodSeconds removes the pod from its Services this many seconds before its first container is stopped.
	// It needs the readiness gate KruisePodReady in the pod.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`
	// OrderedRecreate waits for each container to be ready before the next one is stopped.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`
	// ActiveDeadlineSeconds bounds the restart of one pod; default 600.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// RolloutFailurePolicy says what happens to the other pods when the restart of a pod has failed.
//
// +kubebuilder:validation:Enum=Stop;Continue
type RolloutFailurePolicy string

const (
	// RolloutFailureStop starts no further restarts, and ends the rollout as failed when the restarts in progress have
	// ended.
	RolloutFailureStop RolloutFailurePolicy = "Stop"
	// RolloutFailureContinue restarts the other pods, and then ends the rollout as failed.
	RolloutFailureContinue RolloutFailurePolicy = "Continue"
)

// RestartRolloutStatus is the progress of a rollout.
type RestartRolloutStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Pods is the number of pods of the rollout: pods that existed at its creation and still exist.
	// +optional
	Pods int32 `json:"pods"`
	// Restarted is the number of pods whose containers have been restarted.
	// +optional
	Restarted int32 `json:"restarted"`
	// Restarting is the number of pods with a ContainerRecreateRequest that has not ended.
	// +optional
	Restarting int32 `json:"restarting"`
	// Failed is the number of pods whose ContainerRecreateRequest has failed.
	// +optional
	Failed int32 `json:"failed"`
	// Unavailable is the number of pods that are not available now, for any reason; 0 when the rollout has ended, because pods are
	// not counted any more.
	// +optional
	Unavailable int32 `json:"unavailable"`
	// LastProgressTime is when another pod was last found to be restarted.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// CompletionTime is when the rollout ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Failures of pods, at most ten.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=10
	Failures []RestartFailure `json:"failures,omitempty"`
	// Conditions: Progressing; and at the end Complete, Succeeded and Failed, as in a ContainerRecreateRequest.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RestartFailure is why one pod was not restarted.
type RestartFailure struct {
	// Pod is the name of the pod.
	// +required
	Pod string `json:"pod"`
	// Reason of the condition Failed of its ContainerRecreateRequest.
	// +required
	Reason string `json:"reason"`
	// Message of that condition.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of RestartRollout. Complete is True at the end with any outcome.
const (
	ConditionProgressing = "Progressing"
	ConditionComplete    = "Complete"
	ConditionSucceeded   = "Succeeded"
	ConditionFailed      = "Failed"
	// ConditionReplaced means that a RestartSchedule has created the next rollout in place of this one. This one starts no
	// further restarts and ends when the restarts in progress have ended.
	ConditionReplaced = "Replaced"
)

// Reasons of condition Progressing.
const (
	ReasonRestarting       = "Restarting"
	ReasonPaused           = "Paused"
	ReasonPartition        = "Partition"
	ReasonBudget           = "MaxUnavailable"
	ReasonDisruptionBudget = "PodDisruptionBudget"
	ReasonNoProgress       = "ProgressDeadlineExceeded"
	// ReasonSucceeded and ReasonFailed are the reasons at the end.
	ReasonSucceeded = "Succeeded"
	ReasonFailed    = "Failed"
)

// Reasons of conditions Succeeded and Failed.
const (
	ReasonRestarted         = "Restarted"
	ReasonNoPods            = "NoPods"
	ReasonPodsFailed        = "PodsFailed"
	ReasonDeadlineExceeded  = "DeadlineExceeded"
	ReasonTargetNotFound    = "TargetNotFound"
	ReasonTargetNotReadable = "TargetNotReadable"
	// ReasonNotStarted means that there are pods, but none of them has started its containers: nothing was restarted.
	ReasonNotStarted = "NotStarted"
	ReasonReplaced   = "Replaced"
	// ReasonNamespaceTerminating means that the namespace is being deleted, and the pods with it.
	ReasonNamespaceTerminating = "NamespaceTerminating"
)
