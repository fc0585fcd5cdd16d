// Package node pulls the images of the node's NodeImage and writes its status.
//
// It connects package queue, which decides what is pulled when, to the container runtime: credentials from the Secrets
// of one namespace, progress, Events, and few writes of the status. Decisions about pulls belong in image.
package node
