// Package turns decides which exec probe of a node runs next, and how many run at the same time.
//
// A command in a container costs the node tens of milliseconds of CPU, and more the more of them run: a node with more
// exec probes than it can run answers none of them in time. A Queue bounds how many run at once, follows by how much
// they slow each other down, and takes namespaces in turn, and in each namespace its pods, so that the delay is shared.
package turns
