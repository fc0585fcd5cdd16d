// Package rollout decides how a RestartRollout restarts containers of many pods: which pods it is about (Owns), which of
// them are restarted next, and what its status says (Next). Each pod is restarted by a ContainerRecreateRequest, whose
// name is made from the UIDs of both, so that no pod is restarted twice.
//
// It holds decisions only: values in, values out, the time as an argument. Clients, goroutines and sleeping must stay out.
package rollout
