// Package rollout decides how a RestartRollout restarts containers of many pods: to which pods it applies (Owns), which
// pods are restarted next, and what its status is (Next). Each pod is restarted by a ContainerRecreateRequest. The name
// of the request is derived from the UIDs of rollout and pod, so that no pod is restarted twice.
//
// The package only decides: it takes values and the time as arguments and returns values. Clients, goroutines and
// sleeping must stay out.
package rollout
