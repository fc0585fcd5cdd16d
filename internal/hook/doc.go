// Package hook runs a container's preStop hook in place of kubelet, for the daemon and for the sidecar. Every run is
// bounded in time, and its output in size. How a command is run in a container, and the source of the pod's address, are
// interfaces: the package imports no container runtime and no client.
package hook
