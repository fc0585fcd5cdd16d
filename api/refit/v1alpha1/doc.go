// Package v1alpha1 holds the API group refit.dev: objects that Refit alone defines. Only wire types, their keys and the
// scheme live here: no client, no default that needs a look-up, no controller-runtime.
//
// +kubebuilder:object:generate=true
// +groupName=refit.dev
package v1alpha1
