// Package recreate is the plugin container_recreate: it carries out ContainerRecreateRequests for its own pod, where
// no daemon does, without a container runtime. What is to be done is decided by crr.Plan, as for the daemon; the
// container is stopped by a signal to its first process, and what became of it is read from the pod's status.
//
// It contains: observing the pod, carrying out the one act of a decision, and the reasons why the sidecar
// cannot. Decisions about requests must stay out.
package recreate
