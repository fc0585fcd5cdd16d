package managedfields

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Untracked returns the managedFields with which a write of a NodeImage or a NodePodProbe ends the record of who set which field of
// the object: the API server then records nothing until somebody applies the object server-side. The record of many entries is a third
// of the object, and half of the time of each write, by refit-manager and refit-daemon. Source: "Clearing managedFields", Server-Side
// Apply, Kubernetes documentation.
func Untracked() []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }
