// Package restart restarts containers of a pod, of the pods of a workload, or of those that a selector matches, and follows
// that to its end: a pod by a ContainerRecreateRequest, several by a RestartRollout, which goes on when the command ends.
package restart
