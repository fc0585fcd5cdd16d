// Package sidecarmode is the program that runs in a pod: it reads its configuration, starts the plugins, serves
// their endpoints and its own, and says what the place it runs in allows.
//
// It contains: queues, loops, HTTP endpoints and wiring, and in its folders the plugins: httpprobe, update,
// podprobe, recreate. What a feature decides must stay out; so must the host, CRI, and the room kube, whose
// memory every pod would pay for.
package sidecarmode
