// Package crr decides what a node does next for a ContainerRecreateRequest (Plan). Package queue orders the requests of
// one pod, admission decides whether a request is admitted, and lifecycle decides what the manager does for it. Package
// podrules has the rules about the request's pod that they share. Package record stores the container IDs to stop if
// the CRD has no field for them.
//
// The package only decides: it takes values and the time as arguments and returns values. Clients, CRI types,
// goroutines and sleeping must stay out. Package engine calls Plan: it observes, plans, writes the status, acts, and
// plans again. It needs no other state, because a container instance is identified by its ID, and the ID is recorded in
// the request's status before the instance is stopped.
package crr
