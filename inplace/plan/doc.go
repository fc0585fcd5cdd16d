// Package plan says which changes of a running pod can be made without recreating it, in which order, and which cannot
// and why. It knows nothing of updates that are under way.
package plan
