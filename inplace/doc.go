// Package inplace updates a running pod without recreating it: how an update starts (Start), what to do next (Next),
// and when it is complete. Package plan decides which changes are possible.
//
// The progress of an update is stored on the pod, in OpenKruise's annotation apps.kruise.io/inplace-update-state. So
// the program that calls Next may be killed and restarted, and it can continue updates that OpenKruise has begun. Apply
// writes one step to the API server; it is the only function here that is not pure.
package inplace
