package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindSidecarSet is the kind, for owner references and messages.
const KindSidecarSet = "SidecarSet"

// SidecarSet injects containers into pods when they are created, and updates those containers in running pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=`.status.matchedPods`
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedPods`
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyPods`
// +kubebuilder:printcolumn:name="UPDATED-READY",type=integer,JSONPath=`.status.updatedReadyPods`
// +kubebuilder:printcolumn:name="PROGRESSING",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="NOT-INJECTED",type=integer,JSONPath=`.status.notInjectedPods`,priority=1
// +kubebuilder:printcolumn:name="NOT-UPGRADABLE",type=integer,JSONPath=`.status.notUpgradablePods`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failedPods`
// +kubebuilder:printcolumn:name="REVISION",type=string,JSONPath=`.status.latestRevision`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-zA-Z0-9-]+$')",message="metadata.name must be at most 63 letters, digits and '-'"
type SidecarSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SidecarSetSpec `json:"spec"`
	// +optional
	Status SidecarSetStatus `json:"status,omitzero"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SidecarSet `json:"items"`
}

// SidecarSetSpec says what is injected into which pods, and how running pods are updated.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) && (has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0 || has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",fieldPath=".selector",message="selector is required and must not be empty"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 || has(self.namespaceSelector.matchExpressions) && size(self.namespaceSelector.matchExpressions) > 0",fieldPath=".namespaceSelector",message="namespaceSelector must not be empty; without it all namespaces are selected"
// +kubebuilder:validation:XValidation:rule="has(self.containers) && size(self.containers) > 0 || has(self.initContainers) && size(self.initContainers) > 0 || has(self.patchContainers) && size(self.patchContainers) > 0",message="at least one of containers, initContainers and patchContainers is required"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || size(oldSelf.__namespace__) == 0 || has(self.__namespace__) && size(self.__namespace__) > 0 || has(self.namespaceSelector)",fieldPath=".namespace",message="namespace cannot be removed without a namespaceSelector: the SidecarSet would select pods of all namespaces"
type SidecarSetSpec struct {
	// Selector of the pods that are injected. Required, and not empty.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Namespace limits the SidecarSet to one namespace. With NamespaceSelector as well, both have to select it. OpenKruise
	// has it only in v1alpha1, and stores a NamespaceSelector for the name; so does Refit, unless there is another one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// NamespaceSelector limits the SidecarSet to the namespaces with such labels; unset means all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// InitContainers are injected in the order of their names. Init containers with restartPolicy Always are native
	// sidecars, which can be updated like Containers.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	InitContainers []SidecarContainer `json:"initContainers,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	// Containers are injected, and updated in running pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Containers []SidecarContainer `json:"containers,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	// Volumes that the injected containers mount. Volumes that no container mounts are not injected.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	// +optional
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`
	// +optional
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`
	// ImagePullSecrets are added to the pod's own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	// RevisionHistoryLimit is the number of ControllerRevisions that are kept; default 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// PatchPodMetadata sets annotations and labels of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
	// CustomVersion names this version of the SidecarSet; injectionStrategy.revision can refer to it. In v1alpha1 of
	// OpenKruise it is the label apps.kruise.io/sidecarset-custom-version, which is kept equal: a change of either by a
	// client counts.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	CustomVersion string `json:"customVersion,omitempty"`

	// PodVolumes are names of volumes of the pods themselves, for example of volumeClaimTemplates, that the injected
	// containers mount. A pod without such a volume is refused. Not part of OpenKruise's API.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	PodVolumes []string `json:"podVolumes,omitempty"`
	// PatchContainers adds environment variables and mounts to containers of the pod itself. Not part of OpenKruise's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	PatchContainers []SidecarSetPatchContainer `json:"patchContainers,omitempty"`
}

// SidecarContainer is a container to inject.
//
// Fields of a container that are newer than this version of Refit are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.upgradeStrategy) || !has(self.upgradeStrategy.upgradeType) || self.upgradeStrategy.upgradeType != 'HotUpgrade' || has(self.upgradeStrategy.hotUpgradeEmptyImage) && size(self.upgradeStrategy.hotUpgradeEmptyImage) > 0",fieldPath=".upgradeStrategy",message="hotUpgradeEmptyImage is required with upgradeType HotUpgrade"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.upgradeStrategy) || !has(self.upgradeStrategy.upgradeType) || self.upgradeStrategy.upgradeType != 'HotUpgrade' || !has(self.upgradeStrategy.hotUpgradeEmptyImage) || size(self.image) == 0 || self.upgradeStrategy.hotUpgradeEmptyImage != self.image",fieldPath=".upgradeStrategy.hotUpgradeEmptyImage",message="hotUpgradeEmptyImage must be another image than image: by its image it is known which container of the two is idle"
// +kubebuilder:validation:XValidation:rule="(has(self.upgradeStrategy) && has(self.upgradeStrategy.upgradeType) && self.upgradeStrategy.upgradeType == 'HotUpgrade') == (has(oldSelf.upgradeStrategy) && has(oldSelf.upgradeStrategy.upgradeType) && oldSelf.upgradeStrategy.upgradeType == 'HotUpgrade')",fieldPath=".upgradeStrategy",message="upgradeType cannot be changed: pods have one container of a sidecar or two; add a container with another name"
// +kubebuilder:validation:XValidation:rule="!has(self.resourcesPolicy) || !has(self.resources) || (!has(self.resources.limits) || size(self.resources.limits) == 0) && (!has(self.resources.requests) || size(self.resources.requests) == 0)",fieldPath=".resourcesPolicy",message="only one of resources and resourcesPolicy can be given"
type SidecarContainer struct {
	corev1.Container `json:",inline"`

	// The fields up to resourcesPolicy, their order and their omitempty are part of the hash in the annotations of pods.

	// PodInjectPolicy is BeforeAppContainer, the default of containers, or AfterAppContainer, the default of
	// initContainers.
	// +optional
	PodInjectPolicy PodInjectPolicy `json:"podInjectPolicy,omitempty"`
	// +optional
	UpgradeStrategy SidecarContainerUpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// ShareVolumePolicy enabled mounts what the pod's own containers mount, at the same paths.
	// +optional
	ShareVolumePolicy ShareVolumePolicy `json:"shareVolumePolicy,omitempty"`
	// ShareVolumeDevicePolicy enabled shares the block devices of the pod's own containers.
	// +optional
	ShareVolumeDevicePolicy *ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`
	// TransferEnv copies environment variables of the pod's own containers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	TransferEnv []TransferEnvVar `json:"transferEnv,omitempty"`
	// ResourcesPolicy computes CPU and memory from the resources of the pod's own containers.
	// +optional
	ResourcesPolicy *ResourcesPolicy `json:"resourcesPolicy,omitempty"`

	// VersionLabel is the key of a label of the pod that gets the tag of this container's image, or the first 12 digits
	// of its digest. Not part of OpenKruise's API.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	VersionLabel string `json:"versionLabel,omitempty"`

	// Unknown are the fields of the container that this version of Refit does not know. They are injected as they are.
	Unknown UnknownFields `json:"-"`
}

// PodInjectPolicy says on which side of the pod's own containers a container is injected.
//
// +kubebuilder:validation:Enum=BeforeAppContainer;AfterAppContainer;""
type PodInjectPolicy string

// Values of PodInjectPolicy.
const (
	BeforeAppContainer PodInjectPolicy = "BeforeAppContainer"
	AfterAppContainer  PodInjectPolicy = "AfterAppContainer"
)

// SidecarContainerUpgradeStrategy says how a container is updated in running pods.
type SidecarContainerUpgradeStrategy struct {
	// UpgradeType is ColdUpgrade (default), which restarts the container with the new image, or HotUpgrade, which starts
	// the new one beside the old one.
	// +optional
	UpgradeType UpgradeType `json:"upgradeType,omitempty"`
	// HotUpgradeEmptyImage is the image of the idle container between hot upgrades.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
	// Completion says when the new container of a hot upgrade has taken over; by default when it is ready. Not part of
	// OpenKruise's API.
	// +optional
	Completion *HotUpgradeCompletion `json:"completion,omitempty"`
}

// UpgradeType of a container.
//
// +kubebuilder:validation:Enum=ColdUpgrade;HotUpgrade;""
type UpgradeType string

// Values of UpgradeType.
const (
	ColdUpgrade UpgradeType = "ColdUpgrade"
	HotUpgrade  UpgradeType = "HotUpgrade"
)

// HotUpgradeCompletion says when the new container of a hot upgrade has taken over, and what happens if it does not.
//
// +kubebuilder:validation:XValidation:rule="has(self.conditionType) && size(self.conditionType) > 0 || !has(self.type) || self.type != 'Condition'",message="conditionType is required with type Condition"
// +kubebuilder:validation:XValidation:rule="has(self.annotation) && size(self.annotation) > 0 || !has(self.type) || self.type != 'Annotation'",message="annotation is required with type Annotation"
type HotUpgradeCompletion struct {
	// Type is Ready (default): the new container is ready; Condition: it is ready and the pod has a condition that is True,
	// for example from a PodProbeMarker; or Annotation: it is ready and an annotation of the pod has the version of the new
	// container, which is in its environment variable SIDECARSET_VERSION.
	// +optional
	Type HotUpgradeCompletionType `json:"type,omitempty"`
	// ConditionType of the pod, for type Condition.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	ConditionType string `json:"conditionType,omitempty"`
	// Annotation of the pod, for type Annotation.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Annotation string `json:"annotation,omitempty"`
	// TimeoutSeconds for the new container to take over; without it there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// TimeoutPolicy is Abort (default), which goes back to the old container and sets the new one to the empty image, or
	// Wait, which only reports the pod as failed.
	// +optional
	TimeoutPolicy HotUpgradeTimeoutPolicy `json:"timeoutPolicy,omitempty"`
}

// HotUpgradeCompletionType says how the completion of a hot upgrade is detected.
//
// +kubebuilder:validation:Enum=Ready;Condition;Annotation;""
type HotUpgradeCompletionType string

// Values of HotUpgradeCompletionType.
const (
	CompletionReady      HotUpgradeCompletionType = "Ready"
	CompletionCondition  HotUpgradeCompletionType = "Condition"
	CompletionAnnotation HotUpgradeCompletionType = "Annotation"
)

// HotUpgradeTimeoutPolicy says what happens after the timeout.
//
// +kubebuilder:validation:Enum=Abort;Wait;""
type HotUpgradeTimeoutPolicy string

// Values of HotUpgradeTimeoutPolicy.
const (
	TimeoutAbort HotUpgradeTimeoutPolicy = "Abort"
	TimeoutWait  HotUpgradeTimeoutPolicy = "Wait"
)
