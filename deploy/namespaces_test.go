package deploy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The namespace of the pull secrets is also OpenKruise's. kubectl delete with the folders of the programs must not remove
// it, nor can they be applied before it is there if they have something in it.
func TestDeletingTheProgramsLeavesTheNamespacesOfOthers(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"manager", "daemonset"} {
		for _, kind := range []string{"Namespace", "Role", "RoleBinding", "Secret", "ConfigMap"} {
			for _, object := range documents[unstructured.Unstructured](t, folder+"/*.yaml", kind) {
				namespace := object.GetNamespace()
				if kind == "Namespace" {
					namespace = object.GetName()
				}
				if namespace != "refit-system" && namespace != "kube-system" && namespace != "default" {
					t.Errorf("deploy/%s has %s %s in namespace %s", folder, kind, object.GetName(), namespace)
				}
			}
		}
	}
}
