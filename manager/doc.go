// Package manager is the mode of refit-manager: it admits and converts ContainerRecreateRequests through webhooks and
// looks after their life. It holds wiring and I/O only: what to answer and what to write is decided in package crr.
// Nothing that a node needs to carry out a request may enter; requests go on while no manager runs.
package manager
