package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifests are the objects of deploy/daemonset in the order in which kubectl apply makes them.
func manifests(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("../../deploy/daemonset/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var objects []unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var object unstructured.Unstructured
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

func TestManifestsInstallAlone(t *testing.T) {
	t.Parallel()
	objects := manifests(t)
	known := map[string]bool{}
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && !known["Namespace/"+namespace] {
			t.Errorf("%s %s comes before its namespace %s, or that is missing", object.GetKind(), object.GetName(), namespace)
		}
		known[object.GetKind()+"/"+object.GetName()] = true
	}
	references := 0
	for _, object := range objects {
		for kind, path := range map[string][]string{
			"ServiceAccount":            {"spec", "template", "spec", "serviceAccountName"},
			"ValidatingAdmissionPolicy": {"spec", "policyName"},
			"ClusterRoleBinding":        {"spec", "paramRef", "name"},
		} {
			if name, found, _ := unstructured.NestedString(object.Object, path...); found {
				references++
				if !known[kind+"/"+name] {
					t.Errorf("%s %s refers to %s %s, which is not in the folder", object.GetKind(), object.GetName(), kind, name)
				}
			}
		}
		if kind, found, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); found {
			name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			references++
			if !known[kind+"/"+name] {
				t.Errorf("%s %s refers to %s %s, which is not in the folder", object.GetKind(), object.GetName(), kind, name)
			}
		}
	}
	if references < 5 {
		t.Errorf("%d references found: of the DaemonSet, of bindings of roles and of policies", references)
	}
}

func TestArgumentsOfTheManifestAreValid(t *testing.T) {
	t.Parallel()
	found := false
	for _, object := range manifests(t) {
		if object.GetKind() != "DaemonSet" {
			continue
		}
		found = true
		var set appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
			t.Fatal(err)
		}
		config, log, err := configured(t, set.Spec.Template.Spec.Containers[0].Args...)
		if err != nil || log != "" {
			t.Fatalf("err = %v, logged %q", err, log)
		}
		config.Node = "node-1" // by fieldRef
		if err := config.Validate(); err != nil {
			t.Error(err)
		}
	}
	if !found {
		t.Error("no DaemonSet")
	}
}
