// Package node executes the ContainerRecreateRequests of one node: it observes the pod and its containers, calls
// crr.Plan, writes the status, and then performs the decided action: stop a container, remove exited containers, or
// touch the pod.
//
// Queues, goroutines and calls to the runtime and the API server belong here. Decisions about requests belong in crr,
// and Events, metrics and spans in crr/node/report. Config passes in what the parts of the daemon share.
package node
