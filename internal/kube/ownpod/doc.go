// Package ownpod is the adapter to the Kubernetes API for a program in a pod that works on that pod and a few objects with
// known names.
//
// It contains: reading, watching, creating and patching of named objects, Events, and checks of the program's permissions.
// What the objects mean must stay out, and so must the typed clientset, informers, controller-runtime and the package kube.
// Every pod with the sidecar pays for what is imported here. This is why objects are handled as JSON over client-go's REST
// client, with our own loop around a watch, which saves 0.6 MB of program and 1 MB of memory compared to client-go's
// informers.
package ownpod
