// Package missed decides about pods that a SidecarSet selects and that were not injected: why, and which of them to
// evict next, so that its controller creates a replacement. Clients must stay out.
package missed
