// Package kube is the adapter to the Kubernetes API for programs that run on a node: one connection, minimal
// schemes, caches narrowed to one node, Events. It uses client-go's REST client and informers with the few types
// it needs; the typed clientset and controller-runtime must stay out, for their memory, and neither may a
// decision about what the objects mean.
package kube
