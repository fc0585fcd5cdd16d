// Package cri is the adapter to the node's container runtime: it uses CRI v1 over the runtime's unix socket and returns its
// own types, so that no other package handles CRI messages.
//
// It contains: finding the socket, one shared connection that reconnects by itself, a deadline on every call, and the
// mapping of gRPC codes to errors.
//
// Policy (what to stop and when), API objects, metrics registries, and k8s.io/kubernetes must stay out, and so must
// k8s.io/cri-client, because of the daemon's memory.
package cri
