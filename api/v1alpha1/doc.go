// Package v1alpha1 holds the older served version of the API group apps.kruise.io. Both versions of an object have one
// schema. Only wire types live here; what the two versions have in common is defined once, in v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
