// Package inplace decides how a running pod is changed without being recreated: which changes are possible and in which
// order (Plan), what is to be done next (Next), and when it is truly finished.
//
// The container images, the CPU and memory of the containers, the pod's labels and annotations, and the environment
// variables that come from them can be changed. Everything else needs a new pod, and Plan says so field by field.
//
// How far an update has come is kept on the pod, in OpenKruise's annotation apps.kruise.io/inplace-update-state, so that
// whoever calls Next may be killed and started again, and continues what OpenKruise has begun. Apply writes one step
// to the API server; it is the only function here that is not pure.
package inplace
