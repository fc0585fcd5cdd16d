// Package rollout decides which pods of a SidecarSet are updated next: order, scatter, partition, budgets, pauses. A
// Fleet stores what is known about the pods, so that the cost of a change of one pod does not depend on the number of
// pods.
//
// Package upgrade decides how one pod is updated. Clients, clocks and goroutines must stay out.
package rollout
