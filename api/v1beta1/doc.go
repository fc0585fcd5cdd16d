// Package v1beta1 holds the stored version of the API group apps.kruise.io, field by field as OpenKruise
// defines it, with what Refit adds. Only wire types, their keys and conversion live here: no client,
// no default that needs a look-up, no controller-runtime.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
