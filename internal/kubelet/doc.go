// Package kubelet has rules and keys of kubelet that several packages need: the hash of a container, restart policy, crash
// back-off, and the labels and annotations that kubelet sets. Everything is a pure function of its arguments. It is
// implemented here instead of imported from k8s.io/kubernetes, and tested with values from a real kubelet.
package kubelet
