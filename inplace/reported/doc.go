// Package reported reads what the daemon of a node reports about the container instances of a pod that is updated in
// place, in OpenKruise's annotation apps.kruise.io/runtime-containers-meta: their IDs, and hashes of the spec and
// environment they were created from.
package reported
