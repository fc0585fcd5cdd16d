// Package ownpod is the adapter to the Kubernetes API for a program that runs inside a pod and has to do with that
// pod and a few objects it knows by name.
//
// It contains: reading, following, creating and patching of named objects, Events, and the question what
// this program may do. What the objects mean must stay out; neither may the typed clientset, informers,
// controller-runtime and the room kube. Every pod that the sidecar is in pays for what is imported here, which is
// why objects travel as JSON over client-go's REST client and the loop around a watch is our own (0.6 MB of
// program and 1 MB of memory less than client-go's informers).
package ownpod
