// Package v1beta1 has the stored version of the API group apps.kruise.io, field by field as OpenKruise defines it, with
// additions of Refit. It contains only wire types, their keys and conversion: no client, no default that needs a look-up,
// no controller-runtime.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
