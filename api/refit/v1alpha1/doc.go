// Package v1alpha1 has the API group refit.dev: objects that only Refit defines. It contains only wire types, their keys
// and the scheme: no client, no default that needs a look-up, no controller-runtime.
//
// +kubebuilder:object:generate=true
// +groupName=refit.dev
package v1alpha1
