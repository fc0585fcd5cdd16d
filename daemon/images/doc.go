// Package images pulls the images of the node's NodeImage and writes its status.
//
// It puts image.Queue, which decides what is pulled when, and the container runtime together: credentials from the
// Secrets of one namespace, progress, Events, and few writes of the status. Decisions about pulls belong in image.
package images
