// Package revision identifies versions of a SidecarSet: by hashes of its containers, which pods carry, and by
// ControllerRevisions, from which earlier versions are restored. Both have OpenKruise's format.
package revision
