// Package node runs the probes of a node's NodePodProbe and writes their results to its status.
//
// It contains: which probes of the spec can be run (decided from values), a probe.Worker for each of them, their
// results, and the writer of the status. How a probe runs and when its result changes belongs in package probe. The
// manager applies the results. Clients are ports.
package node
