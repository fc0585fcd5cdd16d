// Package cri is the adapter to the node's container runtime: it uses CRI v1 over the runtime's
// unix socket and gives back values of its own, so that no CRI message leaves the room.
//
// What is in it: finding the socket, one shared connection that reconnects by itself, a deadline on
// every call, and the mapping of gRPC codes to sentinels, done once.
//
// What must stay out: policy (what to stop and when), API objects, metrics registries, and
// k8s.io/kubernetes. The daemon's memory budget also keeps k8s.io/cri-client out.
package cri
