// Package containermeta reports, in the annotation apps.kruise.io/runtime-containers-meta of pods that are updated in
// place, from what their containers were made: kubelet's hash of the spec and a hash of the environment variables that
// come from labels and annotations. While such a pod is being updated, it restarts the containers whose environment is
// no longer that of the pod's metadata, which kubelet does not do.
//
// What is an update, and how hashes are made, belongs in inplace.
package containermeta
