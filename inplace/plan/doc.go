// Package plan decides which changes of a running pod are possible without recreating it, and in which order, and why
// others are not. It knows nothing about updates in progress.
package plan
