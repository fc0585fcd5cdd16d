package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SidecarSetUpdateStrategy says how running pods are updated.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'NotUpdate' || !has(self.selector) || !has(self.partition) || type(self.partition) == int && int(self.partition) == 0",message="only one of selector and partition can be given"
type SidecarSetUpdateStrategy struct {
	// Type is RollingUpdate (default), or NotUpdate: new pods are injected, running pods are not updated.
	// +optional
	Type SidecarSetUpdateType `json:"type,omitempty"`
	// Paused updates no further pods. New pods get the pinned revision, if injectionStrategy.revision is set.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Selector limits updates to some of the pods, for example for a canary.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector must not be empty"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Partition is the number of updatable pods that keep the old version; default 0. A percentage is of all matched pods.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2})%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 0",message="partition must not be negative"
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// MaxUnavailable is the number or percentage of pods that may be unavailable during the update; default 1. A
	// percentage is rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2})%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 0",message="maxUnavailable must not be negative"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// PriorityStrategy says which pods are updated first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// ScatterStrategy spreads pods with these labels over the update.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=64
	ScatterStrategy []UpdateScatterTerm `json:"scatterStrategy,omitempty"`

	// The fields below are not part of OpenKruise's API.

	// MaxUnavailablePerWorkload is the number or percentage of pods of one controller, such as a ReplicaSet or StatefulSet,
	// that may be unavailable during the update; default is 1 less than its pods, and at least 1. A percentage is rounded
	// down, to at least 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1",message="maxUnavailablePerWorkload must be at least 1"
	MaxUnavailablePerWorkload *intstr.IntOrString `json:"maxUnavailablePerWorkload,omitempty"`
	// MinReadySeconds is how long an updated pod has to be ready before it counts as available; default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// ProgressDeadlineSeconds is the time without progress after which the condition Progressing becomes False; default
	// 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// PauseAfterFailedPods pauses the update of a revision when this many pods have failed with it; unset never does.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PauseAfterFailedPods *int32 `json:"pauseAfterFailedPods,omitempty"`
	// RecreatePolicy is Never (default), or Evict: pods that cannot be updated in place are evicted, within their
	// PodDisruptionBudgets and within the limits above.
	// +optional
	RecreatePolicy RecreatePolicy `json:"recreatePolicy,omitempty"`
	// PrePullPolicy is Never (default), or Always: new images are pulled on the nodes of the pods before the first
	// container is stopped.
	// +optional
	PrePullPolicy PrePullPolicy `json:"prePullPolicy,omitempty"`
}

// SidecarSetUpdateType is RollingUpdate or NotUpdate.
//
// +kubebuilder:validation:Enum=RollingUpdate;NotUpdate;""
type SidecarSetUpdateType string

// Values of SidecarSetUpdateType.
const (
	SidecarSetRollingUpdate SidecarSetUpdateType = "RollingUpdate"
	SidecarSetNotUpdate     SidecarSetUpdateType = "NotUpdate"
)

// UpdatePriorityStrategy says which pods are updated first.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.orderPriority) && size(self.orderPriority) > 0 && has(self.weightPriority) && size(self.weightPriority) > 0)",message="only one of orderPriority and weightPriority can be given"
type UpdatePriorityStrategy struct {
	// OrderPriority: pods with the first label come first, and among them the pods with the larger number at the end of its
	// value. Pods without any of the labels come before all others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`
	// WeightPriority: pods with the larger sum of weights come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label.
type UpdatePriorityOrderTerm struct {
	// OrderedKey is a label: the number at the end of its value is the priority of a pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm gives pods a weight.
type UpdatePriorityWeightTerm struct {
	// Weight of the pods that match the selector. The weights of several terms are added.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="matchSelector must not be empty"
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdateScatterTerm is a label whose pods are spread over the update.
type UpdateScatterTerm struct {
	// Key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Value of the label; * matches every value.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}

// RecreatePolicy says what happens to pods that cannot be updated in place.
//
// +kubebuilder:validation:Enum=Never;Evict;""
type RecreatePolicy string

// Values of RecreatePolicy.
const (
	RecreateNever RecreatePolicy = "Never"
	RecreateEvict RecreatePolicy = "Evict"
)

// PrePullPolicy says whether images are pulled before an update.
//
// +kubebuilder:validation:Enum=Never;Always;""
type PrePullPolicy string

// Values of PrePullPolicy.
const (
	PrePullNever  PrePullPolicy = "Never"
	PrePullAlways PrePullPolicy = "Always"
)

// SidecarSetStatus counts pods.
type SidecarSetStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MatchedPods is the number of pods that are selected and injected.
	// +optional
	MatchedPods int32 `json:"matchedPods"`
	// UpdatedPods is the number of pods with the latest revision.
	// +optional
	UpdatedPods int32 `json:"updatedPods"`
	// ReadyPods is the number of matched pods that are ready.
	// +optional
	ReadyPods int32 `json:"readyPods"`
	// UpdatedReadyPods is the number of pods with the latest revision that are ready.
	// +optional
	UpdatedReadyPods int32 `json:"updatedReadyPods,omitempty"`
	// LatestRevision is the name of the ControllerRevision of the spec.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`
	// CollisionCount makes the name of a ControllerRevision unique.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// The fields below are not part of OpenKruise's API.

	// NotInjectedPods is the number of pods that are selected but were not injected.
	// +optional
	NotInjectedPods int32 `json:"notInjectedPods,omitempty"`
	// NotUpgradablePods is the number of pods that cannot be updated in place.
	// +optional
	NotUpgradablePods int32 `json:"notUpgradablePods,omitempty"`
	// UpdatingPods is the number of pods that are being updated.
	// +optional
	UpdatingPods int32 `json:"updatingPods,omitempty"`
	// FailedPods is the number of pods with the latest revision that did not become ready in time.
	// +optional
	FailedPods int32 `json:"failedPods,omitempty"`
	// PausedRevision is the revision whose update was paused by updateStrategy.pauseAfterFailedPods.
	// +optional
	PausedRevision string `json:"pausedRevision,omitempty"`
	// LastProgressTime is when a pod was last updated or became ready. updateStrategy.progressDeadlineSeconds counts from
	// then.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// Conditions: Progressing, Available and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of SidecarSet.
const (
	// ConditionProgressing is True while pods are updated and when all are updated; False if there was no progress in time.
	ConditionProgressing = "Progressing"
	// ConditionAvailable is True when no more pods than updateStrategy.maxUnavailable are unavailable.
	ConditionAvailable = "Available"
	// ConditionDegraded is True if pods have failed, cannot be updated or were not injected.
	ConditionDegraded = "Degraded"
)
