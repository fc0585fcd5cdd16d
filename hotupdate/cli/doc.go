// Package cli asks the refit-sidecar of a pod for hot updates of files, over a port of the pod: new files, the revisions
// that it has accepted, and the way back to one of them. How the port is reached is decided elsewhere.
package cli
