// Package kubelet holds rules and keys of kubelet that several rooms need: the hash of a container, restart policy,
// crash back-off, and the labels and annotations that kubelet sets. Everything is a pure function of its arguments,
// implemented here instead of imported from k8s.io/kubernetes, and tested against values taken from a real kubelet.
package kubelet
