// Package kube is the adapter to the Kubernetes API for programs that run on a node: one connection, minimal schemes,
// caches of one node, Events. It uses client-go's REST client and informers with the few types it needs. The typed
// clientset and controller-runtime must stay out because of their memory; decisions about the objects must stay out too.
package kube
