// Package daemon is the mode of Refit that runs on every node: it watches the ContainerRecreateRequests and pods
// of its node, observes containers through CRI, asks crr.Plan what to do next, records that and does it.
//
// Pod probes are run by its part prober.
//
// Queues, goroutines, HTTP endpoints and wiring belong here. A decision about a request belongs in crr, a
// runtime's ways in cri, the API's in kube.
package daemon
