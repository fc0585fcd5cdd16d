// Package rollout decides which pods of a SidecarSet are updated next: order, scatter, partition, budgets, pauses. It keeps
// what is known of the pods in a Fleet, so that the change of one pod costs the same however many there are.
//
// How one pod is updated is decided in package upgrade. Clients, clocks and goroutines must stay out.
package rollout
