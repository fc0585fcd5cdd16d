// Package daemon is the mode of Refit that runs on every node. It is the root of that mode: configuration, the
// connections to the container runtime and the API server, the cache of the node's pods, HTTP endpoints and health.
//
// The work is done by its subpackages, which do not import each other: requests executes
// ContainerRecreateRequests, podprobes runs the probes of the NodePodProbe. What they share is passed to them here.
// To add one, give it New(Config) and Run(ctx) error, and a method of node in a file beside requests.go.
//
// Decisions about an object do not belong here but in the feature packages (crr, probe), nor does CRI (cri) or the
// wire format of the API (kube).
package daemon
