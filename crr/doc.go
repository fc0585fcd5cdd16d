// Package crr decides what a node does next for a ContainerRecreateRequest (Plan). Package queue decides in which order
// requests of one pod are carried out, admission whether a request may be admitted, lifecycle what the manager does for
// it; podrules has what they know about its pod, record keeps what is to be stopped where the CRD has no field for it.
//
// It holds decisions only: values in, values out, the time as an argument. Clients, CRI types, goroutines and
// sleeping must stay out. Whoever calls Plan observes, plans, writes the status, acts, and plans again; it needs
// no other memory, because an instance of a container is known by its ID and the ID to be stopped is recorded
// in the request's status before it is stopped.
package crr
