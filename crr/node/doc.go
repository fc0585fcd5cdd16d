// Package node executes the ContainerRecreateRequests of one node with an engine of crr/engine. It observes pods and
// their containers, and performs actions: stop a container, remove exited containers, or touch the pod.
//
// The queue of pods and calls to the runtime and the API server belong here. Decisions about requests belong in crr, and
// Events, metrics and spans in crr/node/report. Config passes in what the parts of the daemon share.
package node
