// Package daemon is the program refit-daemon, which runs on every node. It has the configuration, the connections to the
// container runtime and the API server, the cache of the node's pods, HTTP endpoints and health.
//
// The work is done by packages that do not import each other: crr/node executes ContainerRecreateRequests, probe/node runs
// the probes of the NodePodProbe, image/node pulls images, and inplace/node reports container state. What they share is
// passed to them here. To add one, give it New(Config) and Run(ctx) error, and a method of node in a file beside
// requests.go.
//
// Decisions about an object belong in the feature packages (crr, probe), CRI in cri, and the wire format of the API in
// internal/kube.
package daemon
