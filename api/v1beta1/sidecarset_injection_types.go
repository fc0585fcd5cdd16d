package v1beta1

import corev1 "k8s.io/api/core/v1"

// ShareVolumePolicy says whether volumes of the pod's own containers are shared.
type ShareVolumePolicy struct {
	// Type is disabled (default) or enabled.
	// +optional
	Type ShareVolumePolicyType `json:"type,omitempty"`
}

// ShareVolumePolicyType is enabled or disabled.
//
// +kubebuilder:validation:Enum=enabled;disabled;""
type ShareVolumePolicyType string

// Values of ShareVolumePolicyType.
const (
	ShareVolumeEnabled  ShareVolumePolicyType = "enabled"
	ShareVolumeDisabled ShareVolumePolicyType = "disabled"
)

// TransferEnvVar names environment variables of a container of the pod.
//
// +kubebuilder:validation:XValidation:rule="has(self.sourceContainerName) && size(self.sourceContainerName) > 0 || has(self.sourceContainerNameFrom) && has(self.sourceContainerNameFrom.fieldRef)",message="sourceContainerName or sourceContainerNameFrom.fieldRef is required"
// +kubebuilder:validation:XValidation:rule="has(self.envName) && size(self.envName) > 0 || has(self.envNames) && size(self.envNames) > 0",message="envName or envNames is required"
type TransferEnvVar struct {
	// SourceContainerName is the container that has the variables.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SourceContainerName string `json:"sourceContainerName,omitempty"`
	// SourceContainerNameFrom reads the name of the container from a label or annotation of the pod.
	// +optional
	SourceContainerNameFrom *SourceContainerNameSource `json:"sourceContainerNameFrom,omitempty"`
	// EnvName is the name of one variable.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	EnvName string `json:"envName,omitempty"`
	// EnvNames are the names of several variables.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=512
	EnvNames []string `json:"envNames,omitempty"`
}

// SourceContainerNameSource says where the name of a container is read.
type SourceContainerNameSource struct {
	// FieldRef is metadata.labels['KEY'] or metadata.annotations['KEY'].
	// +optional
	FieldRef *PodFieldSelector `json:"fieldRef,omitempty"`
}

// PodFieldSelector is a corev1.ObjectFieldSelector for labels and annotations. Both have the same encoding.
type PodFieldSelector struct {
	// APIVersion of the schema of fieldPath; v1 if it is empty.
	// +optional
	// +kubebuilder:validation:Enum=v1;""
	APIVersion string `json:"apiVersion,omitempty"`
	// FieldPath is metadata.labels['KEY'] or metadata.annotations['KEY'].
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^metadata[.](labels|annotations)\['[^']+'\]$`
	FieldPath string `json:"fieldPath"`
}

// ResourcesPolicy computes CPU and memory of a container when it is injected.
type ResourcesPolicy struct {
	// TargetContainersMode is sum or max: how the resources of several containers are combined into one number.
	// +required
	TargetContainersMode TargetContainersMode `json:"targetContainersMode"`
	// TargetContainersNameRegex selects containers of the pod by name; default is all. It matches parts of names.
	// +optional
	// +kubebuilder:default=".*"
	// +kubebuilder:validation:MaxLength=1024
	TargetContainersNameRegex string `json:"targetContainersNameRegex,omitempty"`
	// ResourcesExpr are the expressions.
	// +required
	ResourcesExpr ResourcesExpr `json:"resourcesExpr"`
}

// TargetContainersMode is sum or max.
//
// +kubebuilder:validation:Enum=sum;max
type TargetContainersMode string

// Values of TargetContainersMode.
const (
	TargetContainersSum TargetContainersMode = "sum"
	TargetContainersMax TargetContainersMode = "max"
)

// ResourcesExpr has expressions for limits and requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.limits) || has(self.requests)",message="limits or requests is required"
type ResourcesExpr struct {
	// +optional
	Limits *ResourceExprList `json:"limits,omitempty"`
	// +optional
	Requests *ResourceExprList `json:"requests,omitempty"`
}

// ResourceExprList are expressions such as max(cpu*50%, 50m). They may have numbers, percentages, quantities, + - * /,
// parentheses, max(a, b), min(a, b), and the variable cpu or memory with the value of the pod's own containers.
type ResourceExprList struct {
	// CPU is the expression for the CPU.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	CPU string `json:"cpu,omitempty"`
	// Memory is the expression for the memory.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Memory string `json:"memory,omitempty"`
}

// SidecarSetPatchPodMetadata sets annotations and labels of a pod.
//
// +kubebuilder:validation:XValidation:rule="has(self.annotations) && size(self.annotations) > 0 || has(self.labels) && size(self.labels) > 0",message="annotations or labels are required"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || size(self.labels) == 0 || !has(self.patchPolicy) || self.patchPolicy != 'MergePatchJson'",fieldPath=".labels",message="labels cannot be given with patchPolicy MergePatchJson: their values are not JSON"
type SidecarSetPatchPodMetadata struct {
	// Annotations that are patched.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
	// PatchPolicy is Retain (default), which keeps the pod's value; Overwrite; or MergePatchJson: the value is a JSON merge
	// patch (RFC 7386) of the pod's annotation.
	// +optional
	PatchPolicy PatchPolicy `json:"patchPolicy,omitempty"`
	// Labels of the pod. Labels by which the SidecarSet or a controller selects the pod are not allowed. Not part of
	// OpenKruise's API.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
}

// PatchPolicy says what happens to a key that the pod already has.
//
// +kubebuilder:validation:Enum=Retain;Overwrite;MergePatchJson;""
type PatchPolicy string

// Values of PatchPolicy.
const (
	PatchRetain    PatchPolicy = "Retain"
	PatchOverwrite PatchPolicy = "Overwrite"
	PatchMergeJSON PatchPolicy = "MergePatchJson"
)

// SidecarSetPatchContainer adds environment variables and mounts to containers of the pod itself.
//
// +kubebuilder:validation:XValidation:rule="has(self.env) && size(self.env) > 0 || has(self.volumeMounts) && size(self.volumeMounts) > 0",message="env or volumeMounts is required"
type SidecarSetPatchContainer struct {
	// NameRegex selects containers by the whole name; default is all containers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NameRegex string `json:"nameRegex,omitempty"`
	// InitContainers includes the pod's own init containers.
	// +optional
	InitContainers bool `json:"initContainers,omitempty"`
	// Env to add. For a variable that the container already has, injectionStrategy.conflictPolicy decides.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []corev1.EnvVar `json:"env,omitempty"`
	// VolumeMounts to add, of spec.volumes or spec.podVolumes. For a path at which the container already mounts something
	// else, injectionStrategy.conflictPolicy decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// SidecarSetInjectionStrategy says how pods are injected.
type SidecarSetInjectionStrategy struct {
	// Paused injects nothing into new pods. Running pods are updated as before.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Revision that new pods get; default is the latest.
	// +optional
	Revision *SidecarSetInjectRevision `json:"revision,omitempty"`

	// The fields below are not part of OpenKruise's API.

	// ConflictPolicy decides if a pod already has a container, a volume, an environment variable or a mount with the name
	// or path of an injected one: Fail (default) refuses the pod, KeepPod does not inject it, Override replaces the pod's.
	// A sidecar never replaces a sidecar of another SidecarSet.
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`
	// FailurePolicy is Ignore (default): pods that are created while refit-manager cannot be reached do not get the
	// sidecars, and are counted in status.notInjectedPods; or Fail: such pods are refused, if this SidecarSet selects them.
	FailurePolicy InjectionFailurePolicy `json:"failurePolicy,omitempty"`
	// Engine is Webhook (default), or Policy: refit-manager leaves the injection to a MutatingAdmissionPolicy, which
	// `refit-manager sidecarset compile` writes for simple SidecarSets.
	// +optional
	Engine InjectionEngine `json:"engine,omitempty"`
	// AllowedPodOverrides are what owners of pods may change by annotations of their pods; default is nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	AllowedPodOverrides []PodOverride `json:"allowedPodOverrides,omitempty"`
	// RepairPolicy is None (default), or Evict: selected pods that were not injected are evicted, one at a time and within
	// their PodDisruptionBudgets.
	// +optional
	RepairPolicy RepairPolicy `json:"repairPolicy,omitempty"`
}

// ConflictPolicy decides between a pod and what is injected.
//
// +kubebuilder:validation:Enum=Fail;KeepPod;Override;""
type ConflictPolicy string

// Values of ConflictPolicy.
const (
	ConflictFail     ConflictPolicy = "Fail"
	ConflictKeepPod  ConflictPolicy = "KeepPod"
	ConflictOverride ConflictPolicy = "Override"
)

// InjectionFailurePolicy says what happens to pods while refit-manager cannot be reached.
//
// +kubebuilder:validation:Enum=Ignore;Fail;""
type InjectionFailurePolicy string

// Values of InjectionFailurePolicy.
const (
	InjectionIgnore InjectionFailurePolicy = "Ignore"
	InjectionFail   InjectionFailurePolicy = "Fail"
)

// InjectionEngine says who injects.
//
// +kubebuilder:validation:Enum=Webhook;Policy;""
type InjectionEngine string

// Values of InjectionEngine.
const (
	EngineWebhook InjectionEngine = "Webhook"
	EnginePolicy  InjectionEngine = "Policy"
)

// PodOverride is what an annotation of a pod may change.
//
// +kubebuilder:validation:Enum=OptOut;Image;Resources
type PodOverride string

// Values of PodOverride.
const (
	// OverrideOptOut allows the annotation sidecarset.refit.dev/inject: "false", or a list of names such as "-log,-mesh".
	OverrideOptOut PodOverride = "OptOut"
	// OverrideImage allows the annotation image.sidecarset.refit.dev/CONTAINER.
	OverrideImage PodOverride = "Image"
	// OverrideResources allows the annotation resources.sidecarset.refit.dev/CONTAINER, a JSON object as in a container.
	OverrideResources PodOverride = "Resources"
)

// RepairPolicy says what happens to pods that were not injected.
//
// +kubebuilder:validation:Enum=None;Evict;""
type RepairPolicy string

// Values of RepairPolicy.
const (
	RepairNone  RepairPolicy = "None"
	RepairEvict RepairPolicy = "Evict"
)
