package v1beta1

// AnnotationRuntimeContainersMeta on a pod holds a RuntimeContainerMetaSet as JSON. The node's daemon writes it, through
// the status subresource of pods. Controllers of in-place updates read it to see whether an update is done.
const AnnotationRuntimeContainersMeta = "apps.kruise.io/runtime-containers-meta"

// RuntimeContainerMetaSet is what the container runtime reports about a pod's containers.
//
// +kubebuilder:object:generate=false
type RuntimeContainerMetaSet struct {
	Containers []RuntimeContainerMeta `json:"containers"`
}

// RuntimeContainerMeta is one container's current instance.
//
// +kubebuilder:object:generate=false
type RuntimeContainerMeta struct {
	Name string `json:"name"`
	// ContainerID as in ContainerStatus, "<runtime>://<id>".
	ContainerID  string                 `json:"containerID"`
	RestartCount int32                  `json:"restartCount"`
	Hashes       RuntimeContainerHashes `json:"hashes"`
}

// RuntimeContainerHashes show from which spec a container instance was created.
//
// +kubebuilder:object:generate=false
type RuntimeContainerHashes struct {
	// PlainHash is kubelet's hash of the container's spec, from the annotation io.kubernetes.container.hash.
	PlainHash uint64 `json:"plainHash"`
	// ExtractedEnvFromMetadataHash is the hash of the environment variables whose values are labels and annotations of the
	// pod, with the values in the instance. 0 means that it is not known. Without such variables it is the hash of "null",
	// as OpenKruise compares it for every container.
	ExtractedEnvFromMetadataHash uint64 `json:"extractedEnvFromMetadataHash,omitempty"`
}
