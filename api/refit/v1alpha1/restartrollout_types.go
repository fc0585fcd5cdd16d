package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind and Resource of RestartRollout, for a dynamic client or a RESTMapper.
const (
	KindRestartRollout     = "RestartRollout"
	ResourceRestartRollout = "restartrollouts"
)

// LabelRestartRollout is on every ContainerRecreateRequest of a rollout, with the UID of the rollout.
const LabelRestartRollout = "refit.dev/rollout-uid"

// AnnotationTrigger is on RestartRollouts that refit-manager has created, with the cause: KIND/NAME of a RestartSchedule,
// or of a ConfigMap or Secret that has changed.
const AnnotationTrigger = "refit.dev/trigger"

// AnnotationOldestFirst set to "true" makes a RestartRollout begin with the pods whose containers have run for the longest
// time, instead of in the order of names. A RestartSchedule sets it if the previous rollout has not succeeded, so that the
// last pods are reached too.
const AnnotationOldestFirst = "refit.dev/oldest-first"

// AnnotationFinished is written to a RestartRollout at its end, before its status, so that an object that is restored from a
// backup without its status restarts nothing again. Its value is a FinishedRecord in JSON.
const AnnotationFinished = "refit.dev/finished"

// FinishedRecord is the value of AnnotationFinished.
type FinishedRecord struct {
	// Name of the RestartRollout. The record has no effect on an object with another name, which is a copy.
	Name string `json:"name"`
	// CompletionTime is status.completionTime.
	CompletionTime metav1.Time `json:"completionTime"`
	// Succeeded says whether the condition Succeeded is True.
	Succeeded bool `json:"succeeded"`
	// Reason is the reason of the conditions Succeeded and Failed.
	Reason string `json:"reason"`
}

// RestartRollout restarts containers of many pods in place, a few pods at a time: the pods of a workload, or the pods that
// a selector matches. A pod that is created after the rollout is left out, since its containers are new.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rr,categories=refit
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="PODS",type=integer,JSONPath=`.status.matchedPods`
// +kubebuilder:printcolumn:name="RESTARTED",type=integer,JSONPath=`.status.restartedPods`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failedPods`
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="RESTARTING",type=integer,priority=1,JSONPath=`.status.restartingPods`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="metadata.name must be at most 200 characters, since the names of its ContainerRecreateRequests are made from it"
type RestartRollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.targetRef) == has(oldSelf.targetRef) && (!has(self.targetRef) || self.targetRef.kind == oldSelf.targetRef.kind && self.targetRef.name == oldSelf.targetRef.name && self.targetRef.apiVersion.split('/')[0] == oldSelf.targetRef.apiVersion.split('/')[0])",fieldPath=".targetRef",message="targetRef cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && (!has(self.selector) || self.selector == oldSelf.selector)",fieldPath=".selector",message="selector cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="self.containers.map(c, c.name) == oldSelf.containers.map(c, c.name)",fieldPath=".containers",message="containers cannot be changed, not even their order; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="has(self.drainSeconds) == has(oldSelf.drainSeconds) && (!has(self.drainSeconds) || self.drainSeconds == oldSelf.drainSeconds)",fieldPath=".drainSeconds",message="drainSeconds cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="has(self.failurePolicy) == has(oldSelf.failurePolicy) && (!has(self.failurePolicy) || self.failurePolicy == oldSelf.failurePolicy)",fieldPath=".failurePolicy",message="failurePolicy cannot be changed; create another RestartRollout"
	// +kubebuilder:validation:XValidation:rule="has(self.pod) == has(oldSelf.pod) && (!has(self.pod) || self.pod == oldSelf.pod)",fieldPath=".pod",message="pod cannot be changed; create another RestartRollout"
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

// RestartRolloutSpec selects the pods and the containers to restart, and limits how fast they are restarted. targetRef,
// selector, containers, drainSeconds, failurePolicy and pod cannot be changed; the other limits, paused, the deadlines and
// ttlSecondsAfterFinished can.
//
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) != has(self.selector)",message="exactly one of targetRef and selector must be set"
type RestartRolloutSpec struct {
	// TargetRef is a workload of the same namespace whose pods are restarted.
	// +optional
	TargetRef *WorkloadReference `json:"targetRef,omitempty"`
	// Selector of pods of the same namespace. It must not be empty.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector must not be empty: it would select every pod of the namespace"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Containers to restart in each pod, stopped one after another in this order. At most 256.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Containers []RolloutContainer `json:"containers"`

	RolloutPace `json:",inline"`

	// FailurePolicy says what happens to the other pods when the restart of a pod has failed.
	// +optional
	// +kubebuilder:default=Stop
	FailurePolicy RolloutFailurePolicy `json:"failurePolicy,omitempty"`
	// ActiveDeadlineSeconds is how long after status.startTime the rollout starts restarts. It then ends as failed, when the
	// restarts in progress have ended. The time begins again after a pause.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished deletes the rollout and its ContainerRecreateRequests this many seconds after its end. Unset
	// keeps them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// Pod says how each pod is restarted.
	// +optional
	// +kubebuilder:default={}
	Pod PodRestart `json:"pod,omitzero"`
}

// RolloutContainer is a container that is restarted.
type RolloutContainer struct {
	// Name of the container.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// RolloutContainers returns containers with these names.
func RolloutContainers(names ...string) []RolloutContainer {
	containers := make([]RolloutContainer, 0, len(names))
	for _, name := range names {
		containers = append(containers, RolloutContainer{Name: name})
	}
	return containers
}

// ContainerNames returns the names of the containers, in their order.
func (s *RestartRolloutSpec) ContainerNames() []string {
	names := make([]string, 0, len(s.Containers))
	for _, container := range s.Containers {
		names = append(names, container.Name)
	}
	return names
}

// WorkloadReference names a workload: Deployment, ReplicaSet, StatefulSet or DaemonSet of apps/v1, or a kind of
// apps.kruise.io that controls its pods itself, such as CloneSet.
//
// +kubebuilder:validation:XValidation:rule="self.apiVersion.startsWith('apps/') ? self.kind in ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet'] : self.kind in ['CloneSet', 'StatefulSet', 'DaemonSet']",message="must be a Deployment, ReplicaSet, StatefulSet or DaemonSet of apps, or a CloneSet, StatefulSet or DaemonSet of apps.kruise.io"
type WorkloadReference struct {
	// APIVersion, such as apps/v1.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(apps|apps\.kruise\.io)/v[0-9]+((alpha|beta)[0-9]+)?$`
	APIVersion string `json:"apiVersion"`
	// Kind, such as Deployment.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// PodRestart says how a pod is restarted, with the words of the strategy of a ContainerRecreateRequest where they are the
// same.
type PodRestart struct {
	// TerminationGracePeriodSeconds is the time between TERM and KILL; default is the pod's; 0 kills at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// ContainerOrder says when the next one of several containers is stopped.
	// +optional
	// +kubebuilder:default=Stopped
	ContainerOrder ContainerOrder `json:"containerOrder,omitempty"`
	// ActiveDeadlineSeconds bounds the restart of one pod.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// ContainerOrder says when the next one of several containers of a pod is stopped.
//
// +kubebuilder:validation:Enum=Stopped;Ready
type ContainerOrder string

const (
	// ContainerOrderStopped stops the next container when the one before has stopped.
	ContainerOrderStopped ContainerOrder = "Stopped"
	// ContainerOrderReady stops the next container when the one before is ready again.
	ContainerOrderReady ContainerOrder = "Ready"
)

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
	// StartTime is when the rollout began to restart pods: when it was first seen, or when it last stopped being paused. Unset
	// while it is paused.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the rollout ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// MatchedPods is the number of pods that existed at the creation of the rollout and still exist. UnavailablePods is 0 when
	// the rollout has ended, because pods are not counted any more.
	RolloutPods `json:",inline"`

	// RestartedPods is the number of pods whose containers have been restarted.
	// +optional
	RestartedPods int32 `json:"restartedPods"`
	// RestartingPods is the number of pods with a ContainerRecreateRequest that has not ended.
	// +optional
	RestartingPods int32 `json:"restartingPods"`
	// Conditions: Progressing; Finished, Succeeded and Failed, as in a ContainerRecreateRequest; and Replaced.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of RestartRollout.
const (
	// ConditionProgressing is True while the rollout continues, and at the end if it has succeeded. It is False if there is no
	// progress, and at the end if the rollout has failed.
	ConditionProgressing = "Progressing"
	// ConditionFinished is True at the end with any outcome.
	ConditionFinished = "Finished"
	// ConditionSucceeded and ConditionFailed are Unknown until the end.
	ConditionSucceeded = "Succeeded"
	ConditionFailed    = "Failed"
	// ConditionReplaced means that a RestartSchedule has created the next rollout in place of this one. This one starts no
	// further restarts and ends when the restarts in progress have ended.
	ConditionReplaced = "Replaced"
)

// Reasons of condition Progressing. At the end it is ReasonCompleted, or the reason of condition Failed.
const (
	ReasonRestarting       = "Restarting"
	ReasonPaused           = "Paused"
	ReasonPartition        = "Partition"
	ReasonBudget           = "MaxUnavailable"
	ReasonDisruptionBudget = "PodDisruptionBudget"
	ReasonNoProgress       = "ProgressDeadlineExceeded"
)

// Reasons of conditions Finished, Succeeded and Failed.
const (
	// ReasonNotFinished is the reason of the three until the end.
	ReasonNotFinished       = "NotFinished"
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
