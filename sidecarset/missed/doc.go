// Package missed decides about pods that a SidecarSet selects and that were not injected: why, and which of them is evicted
// next so that its controller creates another. Clients may not enter.
package missed
