// Package requests executes the ContainerRecreateRequests of one node: it observes the pod and its containers, lets
// crr.Plan decide, writes the status, and then performs the act that was decided: a stop, a removal or a nudge.
//
// Queues, goroutines and the calls to the runtime and the API server belong here; a decision about a request belongs
// in crr, and what users are told about it in daemon/requests/report. What is shared with the other parts of the daemon
// is passed in by Config.
package requests
