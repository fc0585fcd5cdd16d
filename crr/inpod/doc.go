// Package inpod is the plugin container_recreate. It carries out the ContainerRecreateRequests of its own pod if no
// daemon does, without access to the container runtime, with an engine of crr/engine like the daemon. The plugin stops
// a container by a signal to its first process, and reads the result from the pod's status.
//
// It contains: observing the pod, performing the one action of a decision, and the reasons why the sidecar cannot stop
// a container. Decisions about requests must stay out.
package inpod
