// Package hook runs a container's preStop hook in kubelet's place, for the daemon and for the sidecar. Every run is
// bounded in time, and what comes back is bounded in size. How a command is run in a container, and where the pod's
// address is from, are ports: the package knows no container runtime and no API server.
package hook
