package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind and resource of NodeImage.
const (
	KindNodeImage     = "NodeImage"
	ResourceNodeImage = "nodeimages"
)

// NodeImage lists the images that one node has to pull, and the state of each pull. It has the node's name. The manager
// writes the spec, the node's daemon the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="PULLING",type=integer,JSONPath=`.status.pulling`
// +kubebuilder:printcolumn:name="SUCCEEDED",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeImage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NodeImageSpec `json:"spec,omitzero"`
	// +optional
	Status NodeImageStatus `json:"status,omitzero"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeImage `json:"items"`
}

// NodeImageSpec is what the node has to pull.
type NodeImageSpec struct {
	// Images by the name of their repository, such as nginx or registry.example.com/team/app. At most 256.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is one repository with the tags or digests to pull of it.
type ImageSpec struct {
	// PullSecrets are Secrets of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. refit-daemon reads only
	// Secrets of its configured namespace, and uses a copy of a Secret only for the namespace of the original. A
	// kruise-daemon uses all of them for each tag.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// Tags are the pulls, by tag.
	// +required
	// +listType=map
	// +listMapKey=tag
	// +kubebuilder:validation:MaxItems=256
	Tags []ImageTagSpec `json:"tags"`
	// SandboxConfig is passed to the runtime with each pull. refit-daemon uses
	// spec.images[].tags[].namespaces[].sandboxConfig instead, if there is an entry. refit-manager sets it while all jobs
	// of the repository are in one namespace.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject names a Secret.
type ReferenceObject struct {
	// Namespace of the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// ImageTagSpec is one pull.
type ImageTagSpec struct {
	// Tag, or a digest such as sha256:<64 hex digits>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tag string `json:"tag"`
	// CreatedAt is when the pull was requested.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// OwnerReferences are the ImagePullJobs that request the pull.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`
	// Version is increased to repeat the pull.
	// +optional
	Version int64 `json:"version,omitempty"`
	// ImagePullPolicy is IfNotPresent (default) or Always.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
	// Namespaces are the pulls of this tag by refit-daemon: one for each namespace of the ownerReferences, with the policy
	// and the Secrets of its jobs. For a namespace that is not listed, the fields of the tag and its repository apply. Not
	// part of OpenKruise's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Namespaces []ImageNamespaceSpec `json:"namespaces,omitempty"`
}

// ImageNamespaceSpec is the pull of a tag for the jobs of one namespace.
type ImageNamespaceSpec struct {
	// Namespace for which the image is pulled.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Version is increased to repeat the pull for this namespace.
	// +optional
	Version int64 `json:"version,omitempty"`
	// CreatedAt is when the pull was requested.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// Jobs are the jobs with the version that each has requested. The outcome of that version, or of the first one that has
	// ended after it, is the outcome for the job.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Jobs []ImageJobVersion `json:"jobs,omitempty"`
	// ImagePullPolicy is Always if any of the jobs requests it.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
	// PullPolicy has, in each field, the most patient value of the jobs.
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// PullSecrets are copies of Secrets of the namespace. They are listed for the repository as well.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// SandboxConfig is passed to the runtime with the pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ImageJobVersion is the version of a pull that a job has requested.
type ImageJobVersion struct {
	// UID of the ImagePullJob.
	// +required
	UID types.UID `json:"uid"`
	// Version of the tag that the job has asked for.
	// +optional
	Version int64 `json:"version,omitempty"`
}

// ImagePullPolicy says whether an image that is on the node is pulled again.
//
// +kubebuilder:validation:Enum=IfNotPresent;Always;""
type ImagePullPolicy string

const (
	// PullIfNotPresent pulls only what the node does not have. The default.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
	// PullAlways asks the registry whether the tag has changed.
	PullAlways ImagePullPolicy = "Always"
)

// ImageTagPullPolicy bounds a pull.
type ImageTagPullPolicy struct {
	// TimeoutSeconds of one attempt; default 600.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// BackoffLimit is the number of retries after the first attempt; default 3. A negative number means the default.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// TTLSecondsAfterFinished removes the entry this many seconds after the pull finished. Unset keeps it.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// ActiveDeadlineSeconds bounds all attempts together, from the start of the pull on the node.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// SandboxConfig is passed to the runtime as the pod sandbox that an image is pulled for.
type SandboxConfig struct {
	// Labels of the pod sandbox for which the runtime pulls the image.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod sandbox for which the runtime pulls the image.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Labels and annotations of image pulls shared with OpenKruise.
const (
	// AnnotationPullingImageBy is set on the sandbox of every pull by a daemon; its value names the program.
	AnnotationPullingImageBy = "apps.kruise.io/pulling-image-by"
	// AnnotationPullSecretSource on a copy of a pull secret names the original Secret, as "namespace/name". The copy is
	// used only for pulls for that namespace.
	AnnotationPullSecretSource = "imagepulljobs.kruise.io/source-key" //nolint:gosec // the name of an annotation
	// AnnotationPullSecretReferences on a copy of a pull secret names the ImagePullJobs that need it, as "namespace/name",
	// with commas; refit-manager writes at most 100. kruise-manager removes a copy that names none.
	AnnotationPullSecretReferences = "imagepulljobs.kruise.io/references" //nolint:gosec // the name of an annotation
	// FinalizerDeletionProtection is added to ImagePullJobs by kruise-manager, so that it can remove its copies of pull
	// secrets. refit-manager does not add it, and removes it from jobs that have ended or are deleted.
	FinalizerDeletionProtection = "apps.kruise.io/deletion-protection"
	// AnnotationEndedPulls on a NodeImage has the outcomes of pulls whose entries refit-manager has removed while jobs still count
	// them, because their namespace has many: one line for each job, with its namespace and name, its UID, the phase, the time in
	// seconds since 1970, and a message.
	AnnotationEndedPulls = "refit.dev/ended-pulls"
	// LabelFakeNodeImage on a NodeImage means that there is no such node: a test of OpenKruise. Refit ignores such an
	// object.
	LabelFakeNodeImage = "apps.kruise.io/fake-nodeimage"
)

// LabelPullSecretCopyBy marks copies of pull secrets that refit-manager may remove; the value is its name.
const LabelPullSecretCopyBy = "refit.dev/pull-secret-copy-by" //nolint:gosec // the name of a label

// Defaults of a pull.
const (
	DefaultPullTimeoutSeconds = 600
	DefaultPullBackoffLimit   = 3
	// MaxNodeImages bounds spec.images of a NodeImage, MaxImageTags the tags of one of them, MaxImageSecrets its pull secrets, and
	// MaxTagOwners the jobs of a tag.
	MaxNodeImages   = 256
	MaxImageTags    = 256
	MaxImageSecrets = 256
	MaxTagOwners    = 1024
)
