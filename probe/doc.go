// Package probe asks whether something is well, once or again and again.
//
// It contains: the ways to ask (HTTP, TCP, gRPC health, a command, a process, a file) behind Prober,
// thresholds over their answers, and the Worker that asks at its times and owns the goroutine it does so in.
// Clients of Kubernetes, who is asking, and what becomes of a result must stay out. What needs another
// room's means, such as a command in somebody else's container, is asked through a port.
//
// Numbers and meanings follow the probes of Kubernetes (pod lifecycle, kubelet's prober) unless said
// otherwise; a state of its own is Unknown: the probe could not run, or its response was not understood.
package probe
