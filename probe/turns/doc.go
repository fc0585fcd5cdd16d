// Package turns decides which exec probe of a node runs next, and how many run at the same time.
//
// A command in a container costs the node tens of milliseconds of CPU time, and more if many commands run at once: a
// node with more exec probes than it can run would run none of them in time. A Queue limits how many run at once
// and the CPU time that they cost, measures how much they slow each other down, and takes turns between namespaces, and between the pods of each
// namespace, so that the delay is shared.
package turns
