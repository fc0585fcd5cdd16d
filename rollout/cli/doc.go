// Package cli restarts containers of a pod, of the pods of a workload, or of pods that match a selector, and waits for
// the end: one pod by a ContainerRecreateRequest, several by a RestartRollout, which continues when the command ends.
package cli
