// Package image decides about image pulls: what a node has to pull next, when a failed pull is tried again, what the
// status of a NodeImage and of an ImagePullJob says.
//
// Queue runs the pulls of one node through the port Puller; it owns its goroutines, and Stop waits for them. All else
// is functions of values. Clients, credentials and the container runtime must stay out.
package image
