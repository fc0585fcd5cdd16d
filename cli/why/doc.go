// Package why explains the last restart of each container of a pod: whether it was requested, and by whom, or whether
// the container has ended by itself, and what kubelet waits for.
package why
