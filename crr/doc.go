// Package crr decides what happens to a ContainerRecreateRequest: whether it may be admitted (Admit), what a
// node does next for it (Plan) and what the manager does for it (Lifecycle).
//
// It holds decisions only: values in, values out, the time as an argument. Clients, CRI types, goroutines and
// sleeping may not enter. Whoever calls Plan observes, plans, writes the status, acts, and plans again; it needs
// no other memory, because an instance of a container is known by its ID and the ID to be stopped is recorded
// in the request's status before it is stopped.
package crr
