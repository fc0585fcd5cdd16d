package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kind and Resource of InPlaceUpdatePolicy, for a dynamic client or a RESTMapper.
const (
	KindInPlaceUpdatePolicy     = "InPlaceUpdatePolicy"
	ResourceInPlaceUpdatePolicy = "inplaceupdatepolicies"
)

// LabelHeld is on a workload that is held while its pods are updated in place. Its value is "true". Only refit-manager
// removes it. It is a label and not an annotation, because kubectl rollout undo replaces the annotations of a Deployment.
const LabelHeld = "refit.dev/held"

// LabelHoldUID is on a workload that the API server has to hold when its template changes. Its value is the UID of the workload,
// so that it has no effect on one that was created from a copied manifest. refit-manager sets it before it accepts a policy, and
// removes it from workloads without a policy. The API server keeps it in writes of others that remove it, not in writes that change
// its value.
const LabelHoldUID = "refit.dev/hold-uid"

// LabelUndone is on a workload whose template refit-manager has replaced by the former one. Its value is "true". Only writes to
// workloads with it are compared with all InPlaceUpdatePolicies of the namespace. It is removed by the next write of others, and when
// the workload is released.
const LabelUndone = "refit.dev/undone"

// The partition of a held StatefulSet is HeldPartition minus the partition that its owner has set, so that the owner's
// partition is not lost. A partition of at least HeldPartitionMin is a hold; owners use ordinals, which are far below.
const (
	HeldPartition    = 2147483647
	HeldPartitionMin = 1000000000
)

// FinalizerInPlaceUpdate is on an InPlaceUpdatePolicy as long as its workload is held, or has the label refit.dev/hold-uid.
const FinalizerInPlaceUpdate = "refit.dev/in-place-update"

// InPlaceUpdatePolicy updates the running pods of a workload in place whenever the template of the workload changes,
// instead of replacing them. While pods are updated the workload is held by Kubernetes' own means: a Deployment is paused,
// a StatefulSet has a partition, a DaemonSet has the strategy OnDelete.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=iup,categories=refit
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="metadata.name must be at most 200 characters, since the names of its ContainerRecreateRequests are made from it"
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="PODS",type=integer,JSONPath=`.status.matchedPods`
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedPods`
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.updatedReadyPods`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failedPods`
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="REVISION",type=string,priority=1,JSONPath=`.status.updateRevision`
// +kubebuilder:printcolumn:name="STEP",type=integer,priority=1,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="RECREATED",type=integer,priority=1,JSONPath=`.status.recreatedPods`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
type InPlaceUpdatePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self.targetRef.kind == oldSelf.targetRef.kind && self.targetRef.name == oldSelf.targetRef.name",fieldPath=".targetRef",message="targetRef cannot be changed; create another InPlaceUpdatePolicy"
	Spec InPlaceUpdatePolicySpec `json:"spec"`
	// +optional
	Status InPlaceUpdatePolicyStatus `json:"status,omitzero"`
}

// InPlaceUpdatePolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type InPlaceUpdatePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InPlaceUpdatePolicy `json:"items"`
}

// InPlaceUpdatePolicySpec names a workload, and says how its pods follow its template.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.steps) && size(self.steps) > 0 && has(self.partition))",message="steps and partition exclude each other"
type InPlaceUpdatePolicySpec struct {
	// TargetRef is a workload of the same namespace: a Deployment, StatefulSet or DaemonSet of apps/v1.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet', 'DaemonSet']",message="must be a Deployment, StatefulSet or DaemonSet of apps/v1"
	TargetRef WorkloadReference `json:"targetRef"`
	// PodUpdatePolicy says what happens to a change that cannot be made in running pods.
	// +optional
	// +kubebuilder:default=InPlaceIfPossible
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`

	RolloutPace `json:",inline"`

	// Steps of an update, for example one pod and a pause until it is promoted, then all pods. The last step is followed by
	// all other pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Steps []RolloutStep `json:"steps,omitempty"`
	// Promoted ends the pause of a step. It has no effect on other revisions.
	// +optional
	Promoted *StepReference `json:"promoted,omitempty"`
	// PodOrder is the order in which pods are updated. Pods that are not ready come first.
	// +optional
	// +kubebuilder:default=Default
	PodOrder PodOrder `json:"podOrder,omitempty"`
	// PrePullPolicy says whether new images are pulled on the nodes of the pods before the first container is stopped.
	// +optional
	// +kubebuilder:default=Always
	PrePullPolicy PrePullPolicy `json:"prePullPolicy,omitempty"`
	// FailurePolicy says what happens when an updated pod does not become ready.
	// +optional
	// +kubebuilder:default=Pause
	FailurePolicy UpdateFailurePolicy `json:"failurePolicy,omitempty"`
	// HoldPolicy says who holds the workload during an update.
	// +optional
	// +kubebuilder:default=WhileUpdating
	HoldPolicy HoldPolicy `json:"holdPolicy,omitempty"`
	// DeletionPolicy says what happens to an update in progress when the policy is deleted.
	// +optional
	// +kubebuilder:default=Finish
	DeletionPolicy UpdateDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RolloutStep is a step of an update.
type RolloutStep struct {
	// Pods is how many pods have the new template at the end of the step: a number, or a percentage of the pods, rounded up.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1 && int(self) <= 2147483647",message="pods must be a number of at least 1 or a percentage from 1% to 100%"
	Pods intstr.IntOrString `json:"pods"`
	// Pause at the end of the step. Unset continues with the next step.
	// +optional
	Pause *StepPause `json:"pause,omitempty"`
}

// StepPause is a pause at the end of a step.
type StepPause struct {
	// Seconds is the length of the pause. Unset waits until the step is promoted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Seconds *int32 `json:"seconds,omitempty"`
}

// StepReference names a step of the update to one revision.
type StepReference struct {
	// Revision is status.updateRevision of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// Step is the index of the step whose pause ends, from 0. The pauses of earlier steps end too.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Step int32 `json:"step"`
}

// InPlaceUpdatePolicyStatus is the progress of the update of the pods to the present template.
type InPlaceUpdatePolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedTargetGeneration is the generation of the workload that the status belongs to.
	// +optional
	ObservedTargetGeneration int64 `json:"observedTargetGeneration,omitempty"`
	// CurrentRevision names the template that all pods had at the end of the last update: a ControllerRevision, or for a
	// Deployment a hash of the template.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision names the template that the pods get: the present template of the workload, or the former one if the present
	// one was undone and has been written again.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// UpdateRevisionTime is when refit-manager found updateRevision. Unset if the workload already had that template when the
	// policy was created.
	// +optional
	UpdateRevisionTime *metav1.Time `json:"updateRevisionTime,omitempty"`
	// UndoneRevision names the last template that failed and was undone. It is not tried again until the template changes.
	// +optional
	UndoneRevision string `json:"undoneRevision,omitempty"`
	// Step is the index of the present step, from 0; unset without steps.
	// +optional
	Step *int32 `json:"step,omitempty"`
	// StepTime is when all pods of the present step had been updated.
	// +optional
	StepTime *metav1.Time `json:"stepTime,omitempty"`

	RolloutPods `json:",inline"`

	// UpdatedPods is the number of pods with the present template.
	// +optional
	UpdatedPods int32 `json:"updatedPods"`
	// UpdatedReadyPods is the number of those that are available.
	// +optional
	UpdatedReadyPods int32 `json:"updatedReadyPods"`
	// RecreatedPods is the number of pods with the present template that were created since updateRevisionTime and were not
	// updated in place to it. They are new pods: after a replacement, an eviction, a deletion or scaling.
	// +optional
	RecreatedPods int32 `json:"recreatedPods"`
	// UpdatingPods is the number of pods whose update has begun and has not ended.
	// +optional
	UpdatingPods int32 `json:"updatingPods"`
	// Update is the update in progress. It has what may be different in pods, and is written before the first pod changes.
	// +optional
	Update *TemplateUpdate `json:"update,omitempty"`
	// Conditions: Accepted, Progressing, Ready and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TemplateUpdate is an update in progress: what the templates since the last finished update have changed.
type TemplateUpdate struct {
	// StartTime is when the update to the present template began.
	// +required
	StartTime metav1.Time `json:"startTime"`
	// PulledRevision is the updateRevision whose images have been pulled on the nodes of the pods, or cannot be pulled before the
	// update.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PulledRevision string `json:"pulledRevision,omitempty"`
	// Containers that change.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Containers []UpdatedContainer `json:"containers,omitempty"`
	// Labels are keys of labels that change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=317
	Labels []string `json:"labels,omitempty"`
	// Annotations are keys of annotations that change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=317
	Annotations []string `json:"annotations,omitempty"`
}

// UpdatedContainer is a container, or a native sidecar, that an update changes.
type UpdatedContainer struct {
	// Name of the container.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Image says that the image changes.
	// +optional
	Image bool `json:"image,omitempty"`
	// Resources says that requests or limits change.
	// +optional
	Resources bool `json:"resources,omitempty"`
	// ResourceNames are the requests and limits that change, for example limits.cpu. Empty means all, if Resources is true.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	ResourceNames []string `json:"resourceNames,omitempty"`
}
