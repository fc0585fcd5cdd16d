// Package probe checks whether an application is healthy, once or periodically.
//
// It contains: the kinds of probes (HTTP, TCP, gRPC health, a command, a process, a file), which implement Prober,
// thresholds for their results, and Worker, which runs a probe periodically in its own goroutine. Kubernetes clients,
// the users of probes, and the use of results must stay out. Probes that need another package, for example to run a
// command in another container, use a port.
//
// Numbers and meanings follow the probes of Kubernetes (pod lifecycle, kubelet's prober) unless documented otherwise.
// The state Unknown is an addition: the probe could not run, or its response was not understood.
package probe
