// Package node reports, in the annotation apps.kruise.io/runtime-containers-meta of pods that are updated in place,
// what their containers were created from: kubelet's hash of the spec and a hash of the environment variables that come
// from labels and annotations. While such a pod is being updated, the package restarts containers whose environment
// does not match the pod's metadata any more. Kubelet does not do that.
//
// The definition of an update, and how hashes are computed, belongs in inplace.
package node
