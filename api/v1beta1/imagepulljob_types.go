package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// KindImagePullJob is the kind, for owner references and messages.
const KindImagePullJob = "ImagePullJob"

// ImagePullJob pulls an image on the nodes it selects, before a pod needs it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
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
	Spec ImagePullJobSpec `json:"spec"`
	// +optional
	Status ImagePullJobStatus `json:"status,omitzero"`
}

// ImagePullJobList is a list of jobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImagePullJob `json:"items"`
}

// ImagePullJobSpec says which image is pulled, where and how.
type ImagePullJobSpec struct {
	// Image as in a container, with a tag, a digest, or neither, which means the tag latest. It cannot be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="image cannot be changed; create another ImagePullJob"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@[a-z0-9]+:[0-9a-fA-F]{32,})?$')",message="image must be a reference as in a container: [registry/]repository[:tag][@digest]"
	Image                string `json:"image"`
	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobTemplate has the fields that ImagePullJobs and ImageListPullJobs share.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",message="only one of selector and podSelector can be given"
// +kubebuilder:validation:XValidation:rule="(has(self.pullSecrets) ? self.pullSecrets : []) == (has(oldSelf.pullSecrets) ? oldSelf.pullSecrets : [])",fieldPath=".pullSecrets",message="spec.pullSecrets is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.completionPolicy) || !has(self.completionPolicy.activeDeadlineSeconds) || self.completionPolicy.activeDeadlineSeconds >= (has(self.pullPolicy) && has(self.pullPolicy.timeoutSeconds) ? self.pullPolicy.timeoutSeconds : 600)",fieldPath=".completionPolicy.activeDeadlineSeconds",message="activeDeadlineSeconds must not be less than pullPolicy.timeoutSeconds, which is 600 by default"
type ImagePullJobTemplate struct {
	// PullSecrets are Secrets of the job's namespace. They are copied to the namespace from which daemons read. They
	// cannot be changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Selector of nodes. Without Selector and PodSelector all nodes are selected.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`
	// PodSelector selects the nodes on which such pods of the job's namespace run.
	// +optional
	PodSelector *ImagePullJobPodSelector `json:"podSelector,omitempty"`
	// Parallelism is the number of nodes that pull at a time; default 1. 0 starts no further pulls.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int && int(self) >= 0",message="parallelism must be a number and not negative"
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// +optional
	// +kubebuilder:default={}
	PullPolicy *PullPolicy `json:"pullPolicy,omitempty"`
	// +optional
	// +kubebuilder:default={}
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitzero"`
	// SandboxConfig is passed to the runtime with each pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
	// ImagePullPolicy is IfNotPresent (default) or Always.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobNodeSelector selects nodes by name or by label.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.names) && size(self.names) > 0) || !((has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0))",message="only one of names and labels can be given"
type ImagePullJobNodeSelector struct {
	// Names of nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	Names                []string `json:"names,omitempty"`
	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobPodSelector selects pods by label.
type ImagePullJobPodSelector struct {
	metav1.LabelSelector `json:",inline"`
}

// PullPolicy bounds the pull on each node.
type PullPolicy struct {
	// TimeoutSeconds of one attempt; default 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:default=600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// BackoffLimit is the number of retries after the first attempt; default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// CompletionPolicyType says when a job ends.
//
// +kubebuilder:validation:Enum=Always;Never;""
type CompletionPolicyType string

const (
	// CompletionAlways ends the job when each selected node has pulled the image or failed to. The default.
	CompletionAlways CompletionPolicyType = "Always"
	// CompletionNever keeps the job, for future nodes; each node pulls again once a day.
	CompletionNever CompletionPolicyType = "Never"
)

// CompletionPolicy says when a job ends and when it is deleted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Never' || (!has(self.activeDeadlineSeconds) && !has(self.ttlSecondsAfterFinished))",message="activeDeadlineSeconds and ttlSecondsAfterFinished cannot be given with type Never"
type CompletionPolicy struct {
	// Type is Always (default) or Never.
	// +optional
	// +kubebuilder:default=Always
	Type CompletionPolicyType `json:"type,omitempty"`
	// ActiveDeadlineSeconds ends the job this many seconds after its start.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// TTLSecondsAfterFinished deletes the job this many seconds after it finished. Unset keeps it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ImagePullJobStatus counts nodes.
type ImagePullJobStatus struct {
	// StartTime is when the manager started the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the job ended with any outcome.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Desired is the number of selected nodes.
	// +optional
	Desired int32 `json:"desired"`
	// Active is the number of nodes that pull.
	// +optional
	Active int32 `json:"active"`
	// Succeeded is the number of nodes that have the image.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// Failed is the number of nodes that could not pull the image.
	// +optional
	Failed int32 `json:"failed"`
	// Message is the progress of the job, or how it has ended.
	// +optional
	Message string `json:"message,omitempty"`
	// FailedNodes by name.
	// +optional
	// +listType=atomic
	FailedNodes []string `json:"failedNodes,omitempty"`
	// Conditions: Complete and Failed, as in a batch/v1 Job. Not part of OpenKruise's API.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of ImagePullJob and ImageListPullJob.
const (
	// ConditionPullComplete is True when every selected node has the image.
	ConditionPullComplete = "Complete"
	// ConditionPullFailed is True when the job has ended and a node does not have the image.
	ConditionPullFailed = "Failed"
)

// ReasonPullDeadlineExceeded is the reason of the condition Failed at the deadline of a job.
const ReasonPullDeadlineExceeded = "DeadlineExceeded"
