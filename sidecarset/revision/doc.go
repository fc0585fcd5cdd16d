// Package revision has what identifies a version of a SidecarSet: hashes of its containers, which pods carry, and
// ControllerRevisions, from which earlier versions are restored. Both are OpenKruise's wire format.
package revision
