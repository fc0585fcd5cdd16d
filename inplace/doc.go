// Package inplace carries an update of a running pod out, without recreating the pod: how it begins (Start), what is to be
// done next (Next), and when it is truly finished. Which changes are possible is decided in package plan.
//
// How far an update has come is kept on the pod, in OpenKruise's annotation apps.kruise.io/inplace-update-state, so that
// the program that calls Next may be killed and started again, and continues what OpenKruise has begun. Apply writes one step
// to the API server; it is the only function here that is not pure.
package inplace
