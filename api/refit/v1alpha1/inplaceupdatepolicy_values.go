package v1alpha1

// PodUpdatePolicy says what happens to a change that cannot be made in running pods.
//
// +kubebuilder:validation:Enum=InPlaceIfPossible;InPlaceOnly
type PodUpdatePolicy string

const (
	// PodUpdateInPlaceIfPossible lets the controller of the workload replace the pods for such a change.
	PodUpdateInPlaceIfPossible PodUpdatePolicy = "InPlaceIfPossible"
	// PodUpdateInPlaceOnly keeps the pods as they are. The workload stays held until its template is changed again.
	PodUpdateInPlaceOnly PodUpdatePolicy = "InPlaceOnly"
)

// PodOrder is the order in which pods are updated.
//
// +kubebuilder:validation:Enum=Default;DeletionCost
type PodOrder string

const (
	// PodOrderDefault is by descending ordinal for a StatefulSet, and by name for the others.
	PodOrderDefault PodOrder = "Default"
	// PodOrderDeletionCost begins with the lowest controller.kubernetes.io/pod-deletion-cost.
	PodOrderDeletionCost PodOrder = "DeletionCost"
)

// PrePullPolicy says whether images are pulled before an update.
//
// +kubebuilder:validation:Enum=Always;Never
type PrePullPolicy string

const (
	// PrePullAlways pulls new images on the nodes of the pods before the first container is stopped. If an image cannot be
	// pulled, no pod is updated, see UpdateFailurePolicy.
	PrePullAlways PrePullPolicy = "Always"
	// PrePullNever leaves it to kubelet, which stops a container before it pulls the new image.
	PrePullNever PrePullPolicy = "Never"
)

// UpdateFailurePolicy says what happens when an updated pod does not become ready.
//
// +kubebuilder:validation:Enum=Pause;Undo;Continue
type UpdateFailurePolicy string

const (
	// UpdateFailurePause begins no further updates until the template changes, or the failed pods become ready.
	UpdateFailurePause UpdateFailurePolicy = "Pause"
	// UpdateFailureUndo writes the former template to the workload, so that updated pods go back in place. The failed template
	// is not tried again until it changes.
	UpdateFailureUndo UpdateFailurePolicy = "Undo"
	// UpdateFailureContinue updates the other pods. Failed pods count as unavailable.
	UpdateFailureContinue UpdateFailurePolicy = "Continue"
)

// HoldPolicy says who holds the workload during an update.
//
// +kubebuilder:validation:Enum=WhileUpdating;ByOwner
type HoldPolicy string

const (
	// HoldWhileUpdating lets the API server hold the workload in the write that changes its template, and refit-manager
	// release it at the end.
	HoldWhileUpdating HoldPolicy = "WhileUpdating"
	// HoldByOwner means that the owner holds the workload permanently: a Deployment is paused, the others have the strategy
	// OnDelete.
	HoldByOwner HoldPolicy = "ByOwner"
)

// UpdateDeletionPolicy says what happens to an update in progress when the policy is deleted.
//
// +kubebuilder:validation:Enum=Finish;Undo;Release
type UpdateDeletionPolicy string

const (
	// UpdateDeletionFinish completes the update first.
	UpdateDeletionFinish UpdateDeletionPolicy = "Finish"
	// UpdateDeletionUndo writes the former template to the workload and updates the pods back first.
	UpdateDeletionUndo UpdateDeletionPolicy = "Undo"
	// UpdateDeletionRelease releases the workload at once: its controller replaces the pods that are not updated, and for a
	// Deployment all pods.
	UpdateDeletionRelease UpdateDeletionPolicy = "Release"
)

// Condition types of InPlaceUpdatePolicy, with ConditionProgressing and ConditionReady: every pod has the present template
// and is available.
const (
	// ConditionAccepted says that the workload exists and that the policy is the only one for it.
	ConditionAccepted = "Accepted"
	// ConditionStalled says that somebody has to act. It is True or absent.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions of InPlaceUpdatePolicy. It shares these with RestartRollout: ReasonPaused, ReasonPartition,
// ReasonBudget, ReasonDisruptionBudget, ReasonNoProgress, ReasonPodsFailed, ReasonTargetNotFound, ReasonTargetNotReadable.
const (
	ReasonUpdating  = "Updating"
	ReasonStep      = "Step"
	ReasonCompleted = "Completed"
	// ReasonPullingImages means that nodes pull the new images before the first container is stopped, and ReasonImagePullFailed
	// that one of them could not.
	ReasonPullingImages   = "PullingImages"
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonReplacing means that the controller of the workload replaces pods, for a change that cannot be made in place.
	ReasonReplacing = "Replacing"
	// ReasonNotInPlace means that InPlaceOnly refuses the template.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNotHeld means that the workload is not held although pods have to be updated, or that nothing would hold it.
	ReasonNotHeld = "NotHeld"
	// ReasonUndone means that the template failed and was undone.
	ReasonUndone = "Undone"
	// ReasonAccepted and ReasonConflicted are reasons of Accepted. The oldest policy of a workload is accepted.
	ReasonAccepted   = "Accepted"
	ReasonConflicted = "Conflicted"
)
