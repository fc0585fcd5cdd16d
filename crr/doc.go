// Package crr decides what a node does next for a ContainerRecreateRequest (Plan), and in which order requests of one
// pod are carried out (Queue). Package admission decides whether a request may be admitted, package lifecycle what the
// manager does for it.
//
// It holds decisions only: values in, values out, the time as an argument. Clients, CRI types, goroutines and
// sleeping must stay out. Whoever calls Plan observes, plans, writes the status, acts, and plans again; it needs
// no other memory, because an instance of a container is known by its ID and the ID to be stopped is recorded
// in the request's status before it is stopped.
package crr
