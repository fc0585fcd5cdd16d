// Package image has what all packages about image pulls share: references, what a NodeImage requests from a node, the
// state of a pull, and how the status of a NodeImage represents it. All functions are pure. Clients, credentials and
// the container runtime must stay out.
//
// Package queue runs the pulls of a node, entry writes the pulls of jobs into a NodeImage, and jobplan decides about
// the jobs.
package image
