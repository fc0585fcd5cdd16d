// Package podprobes runs the probes of a node's NodePodProbe and writes their results to its status.
//
// It contains: which probes of the spec can be run (a decision about values), a probe.Worker for each of them, their
// results, and the writer of the status. How a probe is run and when its result changes belongs in probe; what becomes of
// a result belongs to the manager; clients are ports.
package podprobes
