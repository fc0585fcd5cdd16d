// Package why explains the last restart of each container of a pod: whether somebody has requested it, and who, or whether
// the container has ended by itself, and what kubelet waits for.
package why
