// Package v1alpha1 has the older served version of the API group apps.kruise.io. Both versions of an object have the same
// schema. It contains only wire types; what the two versions share is defined in v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
