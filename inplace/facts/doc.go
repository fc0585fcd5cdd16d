// Package facts is what the daemon of a node reports of the container instances of a pod that is updated in place, in
// OpenKruise's annotation apps.kruise.io/runtime-containers-meta: who they are, and hashes of what they were made from.
package facts
