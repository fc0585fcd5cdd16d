package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutPace limits how fast the pods of a workload are taken out of service, one after another.
type RolloutPace struct {
	// MaxUnavailable is how many of the pods may be unavailable at a time, as a number or a percentage of the pods,
	// rounded down and at least 1. Pods that are unavailable for other reasons count.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 && int(self) <= 2147483647 : string(self).matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number of at least 1 or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Partition is how many pods are left as they are: a number, or a percentage of the pods, rounded up. Lower it to
	// continue. Unset is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 2147483647 : string(self).matches('^(0|[1-9][0-9]?|100)%$')",message="partition must be a number of at least 0 or a percentage from 0% to 100%"
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// MinReadySeconds is how long a pod must be ready to count as available. Unset is the value of the workload.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// DrainSeconds removes a pod from its Services this many seconds before its first container is stopped. It needs the
	// readiness gate KruisePodReady in the pod, or for updates InPlaceUpdateReady.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
	// ProgressDeadlineSeconds is the time without progress after which the condition Progressing becomes False.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// PodDisruptionBudgetPolicy says whether PodDisruptionBudgets are respected.
	// +optional
	// +kubebuilder:default=Respect
	PodDisruptionBudgetPolicy PodDisruptionBudgetPolicy `json:"podDisruptionBudgetPolicy,omitempty"`
	// Paused begins nothing further. What has begun continues.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PodDisruptionBudgetPolicy says whether PodDisruptionBudgets are respected.
//
// +kubebuilder:validation:Enum=Respect;Ignore
type PodDisruptionBudgetPolicy string

// The policies.
const (
	PodDisruptionBudgetRespect PodDisruptionBudgetPolicy = "Respect"
	PodDisruptionBudgetIgnore  PodDisruptionBudgetPolicy = "Ignore"
)

// RolloutPods counts the pods of a rollout.
type RolloutPods struct {
	// MatchedPods is the number of pods of the rollout.
	// +optional
	MatchedPods int32 `json:"matchedPods"`
	// FailedPods is the number of pods for which the rollout has failed.
	// +optional
	FailedPods int32 `json:"failedPods"`
	// UnavailablePods is the number of pods that are not available now, for any reason.
	// +optional
	UnavailablePods int32 `json:"unavailablePods"`
	// LastProgressTime is when another pod was last found to be finished.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// Failures of pods, at most ten.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=10
	Failures []PodFailure `json:"failures,omitempty"`
}

// PodFailure is why a rollout has failed for one pod.
type PodFailure struct {
	// Pod is the name of the pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// Reason in one word.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Message says what has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
