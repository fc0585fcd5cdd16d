// Package prober keeps the probes of a node's NodePodProbe asked and its status true.
//
// In the room are: what of the spec can be asked (a decision about values), a probe.Worker for each of it, what they
// have said, and the one writer of the status. What a probe is and when it counts belongs in probe; what
// becomes of a result belongs to the manager; clients may not enter, they are ports.
package podprobes
