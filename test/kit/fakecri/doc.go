// Package fakecri is a container runtime without containers: a real CRI v1 gRPC server on a unix
// socket over a model in memory, for tests that need speed, many pods, or faults that a real
// runtime does not show on demand. It passes test/kit/criconformance, as containerd does.
//
// What is in it: the CRI calls Refit makes (and those that make pods), programs and commands with a
// behaviour in place of processes, faults by method, a record of the calls, and on request a toy
// kubelet that starts again what ended.
//
// What must stay out: anything of Refit's but the shared words of package identity.
package fakecri
